"""mlx-lm as an engine."""
