"""Trained models written as folders for inference on a CPU."""
