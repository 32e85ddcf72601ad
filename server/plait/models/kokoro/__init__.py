"""Kokoro's joined ONNX file taken apart: graphs for onnxruntime, weights for PyTorch."""
