"""A mark: which numbers of a WAL are gone, and where lies what of them no manifest covers (`sealed_lines`).

    {"format": 1, "kind": "mark", "nonce": ..., "wal": "<node>-<incarnation>", "number": <n>, "upto": <n>, "merged": [<nonce>, ...]}

Objects are removed only below a mark that is made. So a number that is free above the newest mark was never in use, and below it only
the mark's word counts: what lies in the merged objects, oldest first.
"""

from dataclasses import dataclass

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, Sealed, number_in, parse_nonce

KIND = "mark"


@dataclass(frozen=True, slots=True)
class WalMark:
    """Mark `number` of a WAL: numbers below `upto` are gone."""

    wal: Wal
    number: int
    upto: int
    merged: tuple[bytes, ...]
    """The nonces of merged objects."""
    nonce: bytes

    def encode(self) -> bytes:
        merged = [one.hex() for one in self.merged]
        fields = {"wal": str(self.wal), "number": self.number, "upto": self.upto, "merged": merged}
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields))


def decode(data: bytes) -> WalMark:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, KIND)
    merged = sealed.fields.get("merged")
    if sealed.body or not isinstance(merged, list):
        raise FormatError("a mark has a list of merged objects, and no body")
    try:
        wal = Wal.parse(sealed.fields.get("wal", ""))
    except ValueError as error:
        raise FormatError(str(error)) from None
    number, upto = number_in(sealed.fields, "number"), number_in(sealed.fields, "upto")
    return WalMark(wal, number, upto, tuple(map(parse_nonce, merged)), sealed.nonce)
