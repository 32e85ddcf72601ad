"""Sans-I/O protocol plait.v1: messages, codec, transition table, credit, connection. No clock, no socket."""
