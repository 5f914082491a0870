"""The user's pictures and labels: read, understood, checked; knows no framework."""
