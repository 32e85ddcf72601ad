"""Sans-I/O protocol plait.v1: messages, codec, transition table, credit, connection.

No clock and no socket: time and bytes are passed in.
"""
