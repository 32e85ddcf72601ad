"""Kokoro-82M as an engine: jobs in turns, windows, two backends."""
