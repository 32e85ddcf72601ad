"""`plait bench abandon`: what a server does for readers who left, against any other server."""
