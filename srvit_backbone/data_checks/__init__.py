"""What training on a data set would trip over, found beforehand."""
