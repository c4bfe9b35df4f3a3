"""Authentication by SASL: its mechanisms, and the order in which their messages may come."""

__all__ = [
    "door",
    "doors",
    "jwks",
    "login",
    "oauthbearer",
    "scram",
    "scram_keys",
    "tokens",
]
