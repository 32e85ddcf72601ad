"""An engine for tests: what it does is written in the prompt."""
