"""Authentication by SASL: its mechanisms, and the order in which their messages may come."""

__all__ = [
    "door",
    "doors",
    "login",
    "scram",
    "scram_keys",
]
