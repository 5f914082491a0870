"""Studies across frameworks: a model by name or config, what it costs, the paper's tables."""
