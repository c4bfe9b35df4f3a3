"""Partitions without a leader, certificates that expire and open doors are named, and nothing else is."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from horolog.client.security.settings import Sasl, Security
from horolog.client.wire.cluster_view import ClusterView, Node, PartitionView, TopicView
from horolog.client.wire.troubles import expiry_warnings, offline_partitions, openness_warnings
from tests.support.authority import Authority


def partition(leader=1, error=0):
    return PartitionView(0, leader, 0, (1,), (1,), error)


def view(host="127.0.0.1", **topics):
    found = {
        name: TopicView(name, b"", False, dict(enumerate(parts)), error) for name, (error, *parts) in topics.items()
    }
    return ClusterView("c", 1, {1: Node(1, host, 9092)}, found)


def test_partitions_that_nobody_leads():
    seen = view(a=(0, partition(), partition(leader=7)), b=(3,), c=(0, partition(error=5)))
    assert offline_partitions(seen) == ["a-1", "b", "c-0"]
    assert offline_partitions(view(a=(0, partition()))) == []


@pytest.mark.parametrize(
    ("host", "security", "warns"),
    [("127.0.0.1", None, False), ("10.0.0.1", None, True), ("10.0.0.1", Security(sasl=Sasl("PLAIN")), False)],
)
def test_doors_that_are_open(host, security, warns):
    assert bool(openness_warnings(view(host), security)) is warns


def test_certificates_that_expire_soon(tmp_path):
    now = datetime.now(UTC)
    issued = Authority(tmp_path).issue("broker", expires=now + timedelta(days=3))
    encoded = x509.load_pem_x509_certificate(issued.chain_pem.encode()).public_bytes(Encoding.DER)
    (said,) = expiry_warnings({"broker:1": encoded}, now.timestamp())
    assert "broker:1" in said
    assert expiry_warnings({"broker:1": encoded}, now.timestamp() - 90 * 86_400) == []
    assert expiry_warnings({"broker:1": b"\x30\x00"}, now.timestamp()) == []
