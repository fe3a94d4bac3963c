"""The engines that run a trained model: compiled code, ONNX Runtime, or fairseq."""
