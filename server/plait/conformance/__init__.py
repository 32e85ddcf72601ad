"""`plait conformance URL`: the guarantees of plait.v1, asked of any server that speaks it."""
