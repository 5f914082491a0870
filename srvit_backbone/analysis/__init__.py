"""Looking inside trained models: mixture weights and similarity of depths."""
