"""llama.cpp, through xllamacpp, as an engine."""
