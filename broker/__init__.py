"""The broker: the partition log, what is kept in it, and the server in front of it."""

__version__ = "0.1.0"
