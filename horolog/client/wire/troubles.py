"""A cluster's troubles as far as a client can tell: partitions without a leader, expiring certificates, open listeners."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from horolog.client.security.settings import Security
    from horolog.client.wire.cluster_view import ClusterView

SHOWN: Final = 10  # brokers named at most


def expiry_warnings(certificates: Mapping[str, bytes], now_s: float) -> list[str]:
    """A line for each certificate, DER by broker, that its broker warns about too."""
    from horolog.base.certificates import EXPIRY_WARNING_MS, expiry_warning, read
    from horolog.base.der import DerError

    found = []
    for broker, encoded in sorted(certificates.items()):
        with suppress(DerError):  # the handshake trusted it, whatever the form of its times
            found.append(expiry_warning(broker, read(encoded).expires_s, now_s, EXPIRY_WARNING_MS))
    return [warning for warning in found if warning is not None]


def openness_warnings(view: "ClusterView", security: "Security | None") -> list[str]:
    """One line for all brokers that other machines can reach and that accepted a client without authentication."""
    from horolog.base.hosts import is_loopback

    if security is not None and security.says_who:
        return []
    reached = [f"{each.host}:{each.port}" for each in view.nodes.values() if not is_loopback(each.host)]
    if not reached:
        return []
    return [f"no authentication at {', '.join(reached[:SHOWN])}, which other machines can reach"]


def offline_partitions(view: "ClusterView") -> list[str]:
    """Partitions without a leader, and topics that cannot be described."""
    offline = []
    for name, topic in sorted(view.topics.items()):
        if topic.error_code:
            offline.append(name)
        offline += [
            f"{name}-{index}"
            for index, partition in topic.partitions.items()
            if partition.error_code or partition.leader not in view.nodes
        ]
    return offline
