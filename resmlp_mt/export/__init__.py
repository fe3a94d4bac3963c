"""Trained models written as graphs for ONNX Runtime."""
