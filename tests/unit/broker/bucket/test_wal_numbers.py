"""What lies under a number of a WAL."""

import pytest

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.wal_numbers import ShippedData, identify
from horolog.broker.bucket.wal_object import Identity

NONCE = bytes(range(16))
WAL = Wal(2, 17)


def test_data_and_fences_are_told_apart():
    assert identify(wal_object.encode(Identity(WAL, 42, 43, NONCE), []), WAL, 42) == ShippedData(NONCE)
    fence = Fence(WAL, 42, 3, NONCE)
    assert identify(fence.encode(), WAL, 42) == fence


@pytest.mark.parametrize(
    "data",
    [
        b"", b"HWAL", wal_object.encode(Identity(WAL, 42, 43, NONCE, is_merged=True), []),
        wal_object.encode(Identity(WAL, 41, 42, NONCE), []), wal_object.encode(Identity(Wal(3, 17), 42, 43, NONCE), []),
        Fence(WAL, 41, 3, NONCE).encode(), Fence(Wal(2, 18), 42, 3, NONCE).encode(),
    ],
)  # fmt: skip
def test_what_belongs_elsewhere_is_refused(data):
    with pytest.raises(FormatError):
        identify(data, WAL, 42)
