"""TCP: listeners, connections, and the way from a frame to its handler."""

__all__ = [
    "background",
    "conversation",
    "descriptors",
    "dispatch",
    "limits",
    "listener",
    "meters",
    "peer_listener",
    "sasl_handshake",
]
