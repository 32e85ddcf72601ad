"""A long soak: everything clients do, at random, for a long time; and whether it leaves a trace."""
