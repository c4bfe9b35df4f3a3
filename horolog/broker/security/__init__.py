"""Authentication and authorization: what a listener requires of its peers, how that is checked, and access lists."""

__all__ = [
    "acls",
    "audit",
    "audit_file",
    "authorizer",
    "delegation",
    "listener_protection",
    "password_encoder",
    "peer_access",
    "quota_entities",
    "quotas",
    "sasl",
    "tls_listeners",
    "tls_wire",
    "users",
]
