"""`plait bench`: what stops, the wire, speech and transcription cost, measured on this machine.

The commands start a server of their own and speak to it through the Python client, as an app
would. Does NOT know: how the gateway works inside; it reads terminals, `/metrics` and CPU times.
"""
