"""Engines: the contract, the worker process around it, and one adapter per model library."""
