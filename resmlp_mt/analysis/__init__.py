"""Looks into a trained model: its matrices, its features, its training."""
