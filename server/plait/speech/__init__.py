"""From text to what a speech model reads: normalisation, segments, phonemes, voice names."""
