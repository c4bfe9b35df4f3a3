"""The policy about damage: what a scan found is kept, cut or left aside.

A torn tail is damage with nothing good behind it: what a crash leaves of the last write. It may be cut. Damage with good
batches behind it is a hole: it is left where it is, never deleted with what follows, and readers pass over it as over a gap
that the cleaner has left.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from broker.log.scan import Batch, Damage, Read, scan
from broker.log.seals import Hole


@dataclass(slots=True)
class Survey:
    """What was found in a log file."""

    file_bytes: int
    good_bytes: int = 0
    """Where the last good batch ends."""
    holes: tuple[Hole, ...] = ()
    damages: list[Damage] = field(default_factory=list)

    @property
    def torn_bytes(self) -> int:
        return self.file_bytes - self.good_bytes

    def holes_to(self, end: int) -> tuple[Hole, ...]:
        """The holes, with the torn tail as the last one."""
        return self.holes if self.good_bytes == end else (*self.holes, (self.good_bytes, end))


def survey(read: Read, file_bytes: int, first_offset: int, end_offset: int, absorb: Callable[[Batch], None]) -> Survey:
    """Scan a whole log file, show every good batch to `absorb` in order, and say what else there is."""
    found = Survey(file_bytes)
    for span in scan(read, file_bytes, first_offset=first_offset, end_offset=end_offset):
        if isinstance(span, Damage):
            found.damages.append(span)
            continue
        if span.position > found.good_bytes:
            found.holes = (*found.holes, (found.good_bytes, span.position))
        absorb(span)
        found.good_bytes = span.end
    return found
