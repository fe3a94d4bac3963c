"""What a model has learned: its matrices, its features, its training."""
