"""A fence: the object that ends the WAL of another broker (`sealed_lines`).

    {"format": 1, "kind": "fence", "nonce": ..., "wal": "<node>-<incarnation>", "number": <n>, "by": <node>}

It lies under a number of the WAL as data does. The WAL ends before it, once the journal says so.
"""

from dataclasses import dataclass

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, Sealed, number_in

KIND = "fence"


@dataclass(frozen=True, slots=True)
class Fence:
    """The WAL that is fenced, at which number, and by which broker."""

    wal: Wal
    number: int
    by: int
    nonce: bytes

    def encode(self) -> bytes:
        fields = {"wal": str(self.wal), "number": self.number, "by": self.by}
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields))


def decode(data: bytes) -> Fence:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, KIND)
    if sealed.body:
        raise FormatError("a fence has no body")
    try:
        wal = Wal.parse(sealed.fields.get("wal", ""))
    except ValueError as error:
        raise FormatError(str(error)) from None
    return Fence(wal, number_in(sealed.fields, "number"), number_in(sealed.fields, "by"), sealed.nonce)
