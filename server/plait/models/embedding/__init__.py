"""Embedding models: what a sentence-transformers directory says, and the form an engine loads."""
