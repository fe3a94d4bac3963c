"""What runs a trained model: compiled code, ONNX Runtime, or fairseq."""
