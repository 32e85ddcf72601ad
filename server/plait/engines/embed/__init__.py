"""Embeddings: texts in micro-batches through a transformer on onnxruntime."""
