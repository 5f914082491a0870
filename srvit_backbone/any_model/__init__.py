"""A model by its variant's name or its config, whatever the framework: opened, costed, run."""
