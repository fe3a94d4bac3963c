"""Graphs of exports, which ONNX Runtime runs."""
