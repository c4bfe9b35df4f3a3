"""Looks up which object has a number of a WAL: data that its broker has shipped, or a fence."""

from typing import NamedTuple

from horolog.broker.bucket import fence, wal_object
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError


class ShippedData(NamedTuple):
    """Data of a broker, with the nonce by which it knows its own again."""

    nonce: bytes


def identify(data: bytes, wal: Wal, number: int) -> ShippedData | Fence:
    """What lies under that number; raises FormatError for what does not belong there."""
    if not wal_object.is_object(data):
        found = fence.decode(data)
        if (found.wal, found.number) != (wal, number):
            raise FormatError(f"a fence of {found.wal}, number {found.number}, under {wal}, number {number}")
        return found
    identity = wal_object.decode_head(data)
    if (identity.wal, identity.first, identity.upto) != (wal, number, number + 1) or identity.is_merged:
        raise FormatError(f"data of {identity.wal}, number {identity.first}, under {wal}, number {number}")
    return ShippedData(identity.nonce)
