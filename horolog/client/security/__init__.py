"""How a client reaches a listener that asks for TLS, credentials, or both; under the names that Kafka's clients have for it.

    Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", ...})

`options` reads the names, `settings` is what they come to, `tls` makes a context of it and names the faults of a handshake,
`scram`, `mechanisms` and `tokens` are the ways to log in, and `login` walks them on a connection. Nothing of it is imported for
a client of an open listener.
"""

from horolog.client.security.settings import Sasl, Security, SecurityError, Store, Tls

__all__ = ["Sasl", "Security", "SecurityError", "Store", "Tls"]
