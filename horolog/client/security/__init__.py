"""How a client reaches a listener that asks for TLS, credentials, or both; under the setting names of Kafka's clients.

    Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", ...})

`options` reads the names into `settings`, `tls` makes a context of them and names the faults of a handshake, `mechanisms`
and `tokens` are the ways to log in; `client.wire.login` logs in on a connection. None of it is imported for a client
of an open listener.
"""

from horolog.client.security.settings import Sasl, Security, SecurityError, Store, Tls

__all__ = [
    "Sasl",
    "Security",
    "SecurityError",
    "Store",
    "Tls",
    "mechanisms",
    "options",
    "settings",
    "tls",
]
