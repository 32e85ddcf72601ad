"""`plait bench`: what a stop costs, and what the wire costs, measured on this machine.

Both commands start a server of their own and speak to it through the Python client, as an app
would. Does NOT know: how the gateway works inside; it reads terminals, `/metrics` and CPU times.
"""
