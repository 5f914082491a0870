"""One module a framework; each imports the core and its framework only."""
