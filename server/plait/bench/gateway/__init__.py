"""What the gateway itself costs: a scripted engine behind it, a bare WebSocket server beside it."""
