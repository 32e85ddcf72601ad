"""The HTTP shell: WebSocket endpoint, pages, health, metrics and the checks before them."""
