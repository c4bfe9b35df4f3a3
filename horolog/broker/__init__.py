"""The broker: the partition log, what is kept in it, and the server in front of it."""
