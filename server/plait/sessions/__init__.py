"""One session per socket: its streams, their single terminals and the fair outbox."""
