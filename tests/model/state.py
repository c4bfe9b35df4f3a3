"""The state of the model: brokers, the journal, and the store, for one partition that changes hands.

Store: a key is created once or not at all. A PUT lies on the wire until it arrives, which may be after its sender has died or been
fenced, and twice. A broker here is an incarnation: it has a WAL of its own, and does not come back.

The journal holds `Entry("fence" or "hand", wal, end, next)`: the WAL of the leader ends before number `end`, and `next` leads from
there, one epoch higher. The *lineage* of the partition is the list of (WAL, end) that follows from it. A *manifest* (epoch, objects,
position) says that the log up to the end of its objects lies in them, and that the lineage is covered up to `position`: an index in
the lineage, and a number in that WAL. A *mark* says which numbers of a WAL are gone, and what of them lies in a merged object.
"""

from dataclasses import dataclass
from typing import NamedTuple

FENCE = "fence"


class Broken(Exception):
    """A promise is broken: a later leader does not find what a client was told."""


class Entry(NamedTuple):
    kind: str
    wal: int
    end: int
    next: int


class Put(NamedTuple):
    """The create of a WAL object on the wire, which may arrive once more so many times."""

    wal: int
    number: int
    content: tuple
    repeats: int


class Append(NamedTuple):
    """The create of a journal entry on the wire."""

    number: int
    entry: Entry


class Manifest(NamedTuple):
    epoch: int
    objects: tuple
    position: tuple[int, int]


NO_MANIFEST = Manifest(0, (), (0, 0))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen: brokers, records, WAL objects of each, journal entries, manifests, late repeats; and which acts."""

    brokers: int
    records: int
    puts: int
    entries: int
    manifests: int = 0
    repeats: int = 0
    acts: frozenset[str] = frozenset()


@dataclass(slots=True)
class Broker:
    """One incarnation."""

    alive: bool = True
    role: str = "idle"
    """idle, reading (it takes over), leads, gives (it hands over), over."""
    applied: int = 0
    """Journal entries that it has read."""
    log: tuple = ()
    sent: int = 0
    """How much of the log is in PUTs."""
    number: int = 0
    """The number of its next WAL object."""
    made: frozenset[int] = frozenset()
    ends: tuple[int, ...] = ()
    """Where the log ends after each of its objects."""
    safe: int = 0
    """All numbers below it are made."""
    high_watermark: int = 0
    known: int = -1
    """The newest manifest that it knows."""
    fencing: tuple[int, int, bool] | None = None
    """The WAL that it fences, at which number, and whether the fence is made."""
    pending: Entry | None = None
    """The entry that it has sent to the journal, until it knows what became of it."""
    upload: tuple | None = None
    """Objects and position of the manifest that comes next."""
    reading: tuple[int, int] | None = None
    """Where its reading of the lineage is."""
    removing: tuple[int, int] | None = None
    """The WAL whose numbers it removes, and up to which."""
    began_at: int = 0
    """The first offset of its term."""
    term: int = 0
    since: int = 0
    """The first number of its term in its WAL."""
    met_a_gap: bool = False
    """Whether its reading met a number that is gone."""

    def key(self):
        return tuple([getattr(self, name) for name in self.__slots__])

    def copy(self):
        new = Broker.__new__(Broker)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        return new


class State:
    """Everything, at one moment."""

    __slots__ = (
        "brokers", "data", "journal", "manifests", "marks", "merged", "record_count", "told", "wals", "wire",
    )  # fmt: skip

    def __init__(self, bounds):
        count = bounds.brokers
        self.brokers = [Broker() for _ in range(count)]
        self.brokers[0].role = "leads"
        self.journal = ()
        self.wals = [{} for _ in range(count)]
        self.marks = [0] * count
        self.merged = [{} for _ in range(count)]
        self.manifests = ()
        self.data = frozenset()
        """Data objects: (epoch, first offset, records)."""
        self.wire = frozenset()
        self.told = {}
        """What clients were told lies at each offset."""
        self.record_count = 0

    def copy(self):
        new = State.__new__(State)
        for name in self.__slots__:
            setattr(new, name, getattr(self, name))
        for name in ("brokers", "wals", "marks", "merged"):
            setattr(new, name, list(getattr(self, name)))
        return new

    def own(self, index):
        """A broker of this state that may be changed."""
        broker = self.brokers[index] = self.brokers[index].copy()
        return broker

    def key(self):
        return (
            tuple([one.key() for one in self.brokers]),
            self.journal,
            tuple([tuple(sorted(one.items(), key=_first)) for one in self.wals]),
            tuple(self.marks),
            tuple([tuple(sorted(one.items())) for one in self.merged]),
            self.manifests,
            self.data,
            self.wire,
            tuple(sorted(self.told.items())),
            self.record_count,
        )

    # -- the store

    def create(self, wal, number, content):
        if number in self.wals[wal]:
            return False
        self.wals[wal] = {**self.wals[wal], number: content}
        return True

    def read(self, wal, number):
        """Below the mark only its word counts."""
        return (self.merged if number < self.marks[wal] else self.wals)[wal].get(number)

    def remove(self, wal, upto):
        """Fences are never removed."""
        self.wals[wal] = {
            number: content for number, content in self.wals[wal].items() if number >= upto or content == FENCE
        }

    @property
    def newest(self):
        return self.manifests[-1] if self.manifests else NO_MANIFEST

    # -- clients

    def tell(self, broker):
        """A client learns of everything below the high watermark."""
        for offset in range(broker.high_watermark):
            was = self.told.get(offset)
            if was is None:
                self.told = {**self.told, offset: broker.log[offset]}
            elif was != broker.log[offset]:
                raise Broken(f"two records at offset {offset}: {was} and {broker.log[offset]}")


def _first(item):
    return item[0]


def lineage(journal, bug=""):
    """[(wal, end or None)] of the partition, and the end of each WAL that is fenced.

    An entry about a WAL that does not lead any more changes nothing.
    """
    line, fenced = [(0, None)], {}
    for kind, wal, end, successor in journal:
        if kind == FENCE:
            fenced.setdefault(wal, end)
        if line[-1][0] == wal or bug == "entries_taken_blindly":
            line[-1] = (line[-1][0], end)
            line.append((successor, None))
    return line, fenced


def records_of(objects):
    return tuple([record for one in objects for record in one[2]])


def counts(content, epoch, bug):
    """Whether a WAL object has records of that epoch."""
    return content not in {None, FENCE} and (content[0] == epoch or bug == "runs_of_any_epoch")


def found(state, bug):
    """What a leader that took over now would find; None for what it would look for in vain."""
    line, _ = lineage(state.journal, bug)
    _, objects, (first, start) = state.newest
    log = []
    for one in objects:
        log += one[2] if one in state.data else [None] * len(one[2])
    for index in range(first, len(line)):
        wal, end = line[index]
        number = start if index == first else 0
        while end is None or number < end:
            content = state.read(wal, number)
            if number >= state.marks[wal] and content in {None, FENCE}:
                if end is not None:
                    return [*log, None]
                break
            if counts(content, index, bug):
                log += content[1]
            number += 1
    return log


def verify(state, bug=""):
    """Raise Broken unless a leader that took over now would find everything that a client was told."""
    log = found(state, bug)
    for offset, record in state.told.items():
        if offset >= len(log) or log[offset] != record:
            there = log[offset] if offset < len(log) else "nothing"
            raise Broken(f"offset {offset}: a client was told {record}, a new leader finds {there}")
