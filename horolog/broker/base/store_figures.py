"""What a broker over a store shows of itself: the families of its metrics, and one value with what it is like at a moment.

They are known to every broker, so that the catalogue of metrics is one; a broker without a store has no such figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from horolog.base.readable import counted
from horolog.broker.base.metrics import Described, Kind, Metrics, Samples

GAUGE, COUNTER, HISTOGRAM = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM

REQUESTS = Described(
    "store_requests_total",
    COUNTER,
    "Requests to the object store, by kind and outcome.",
    ("kind", "outcome"),
)
SECONDS = Described(
    "store_request_seconds", HISTOGRAM, "Time from a request to the object store to its response.", ("kind",)
)
BYTES = Described("store_bytes_total", COUNTER, "Bytes written to the store and read from it.", ("direction",))
TAKEOVERS = Described(
    "store_takeover_seconds",
    HISTOGRAM,
    "Time from the news that this broker leads partitions until it serves all of them.",
    (),
    (0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0),
)
COUNTED = (REQUESTS, SECONDS, BYTES, TAKEOVERS)

DOLLARS = Described(
    "store_daily_dollars",
    GAUGE,
    "Cost of requests per day, from the last ten minutes and the prices in the settings, without storage.",
)
UNSAFE = Described("store_unsafe_bytes", GAUGE, "Bytes of records that are not in the store yet.")
UNMERGED_BYTES = Described("store_unmerged_bytes", GAUGE, "Bytes of unmerged objects of this broker's WAL.")
UNMERGED = Described("store_unmerged_objects", GAUGE, "Unmerged objects of this broker's WAL.")
FENCED = Described("store_fenced_total", COUNTER, "Number of times that other brokers have fenced this process.")
LEASE = Described(
    "store_lease_left_seconds",
    GAUGE,
    "Time for which this broker's lease is still valid. Below zero: it refuses its clients.",
)
JOURNAL = Described("store_journal_lag_seconds", GAUGE, "Time since this broker last read the end of the journal.")
CLOCK = Described("store_clock_offset_seconds", GAUGE, "How far the store's clock is ahead of this machine's.")
OPENING = Described("store_opening_partitions", GAUGE, "Partitions that this broker leads but does not serve yet.")
MEMBERS = Described("store_member_brokers", GAUGE, "Brokers of the cluster that this broker knows.")
FOLLOWED_BYTES = Described(
    "store_followed_bytes_total",
    COUNTER,
    "Bytes of records of other leaders' partitions that this broker has read for consumers of its rack.",
)
LOST = Described(
    "store_lost_objects",
    GAUGE,
    "Objects that the store has lost or altered, and without which this broker cannot read records that it serves.",
)
GIVEN_UP = Described(
    "store_given_up_objects_total",
    COUNTER,
    "Objects that were missing or damaged when this broker took over or merged their records, which it left out.",
)
UPLOADS = Described("store_uploaded_segments_total", COUNTER, "Segments that were uploaded to the store.")
UPLOADED_BYTES = Described("store_uploaded_bytes_total", COUNTER, "Bytes of the logs of segments that were uploaded.")
UPLOAD_FAILURES = Described(
    "store_upload_failures_total", COUNTER, "Segments that could not be read for their upload, which is tried again."
)
WAITING_BYTES = Described(
    "store_waiting_segment_bytes",
    GAUGE,
    "Bytes of closed segments on this broker's disk that are not in the store yet.",
)
UPLOAD_FAMILIES = (UPLOADS, UPLOADED_BYTES, UPLOAD_FAILURES, WAITING_BYTES)
GAUGES = (
    DOLLARS,
    UNSAFE,
    UNMERGED_BYTES,
    UNMERGED,
    FENCED,
    LEASE,
    JOURNAL,
    CLOCK,
    OPENING,
    MEMBERS,
    FOLLOWED_BYTES,
    LOST,
    GIVEN_UP,
)

FAMILIES = (*COUNTED, *GAUGES, *UPLOAD_FAMILIES)


class UploadFigures(NamedTuple):
    """The uploads of segments by a broker, in the order of their families."""

    segments: int = 0
    size_bytes: int = 0
    failures: int = 0
    waiting_bytes: int = 0


class StoreFigures(NamedTuple):
    """A broker over a store at a moment."""

    fault: str
    """Why the newest request to the store has no answer; empty if it has one."""
    is_member: bool
    lease_left_s: float
    journal_lag_s: float
    opening_count: int
    unsafe_bytes: int
    unmerged_bytes: int
    unmerged_objects: int
    fenced_count: int
    clock_offset_s: float
    dollars_per_day: float
    member_count: int
    counted: Metrics
    uploads: UploadFigures = UploadFigures()
    followed_bytes: int = 0
    unreadable: Sequence[str] = ()
    """Records that cannot be read, one line for each object that is lost."""
    given_up_objects: int = 0
    undeleted: str = ""
    """Why objects cannot be deleted; empty if they can."""

    def warnings(self) -> Iterator[str]:
        """Faults that keep no client away."""
        yield from self.unreadable
        if self.undeleted:
            yield f"objects cannot be deleted from the store: {self.undeleted}"

    def reasons(self) -> Iterator[str]:
        """Why clients should stay away."""
        if not self.is_member:
            yield "other brokers have fenced this one, which registers again"
        elif self.lease_left_s <= 0:
            yield f"the store is unavailable: {self.fault or 'it does not answer'}"
        if self.opening_count:
            yield f"the broker is still reading {counted(self.opening_count, 'partition')} that it leads from the store"

    def collect(self) -> Iterator[tuple[Described, Samples]]:
        for family in COUNTED:
            yield family, list(self.counted.samples(family))
        values = (
            self.dollars_per_day,
            self.unsafe_bytes,
            self.unmerged_bytes,
            self.unmerged_objects,
            self.fenced_count,
            self.lease_left_s,
            self.journal_lag_s,
            self.clock_offset_s,
            self.opening_count,
            self.member_count,
            self.followed_bytes,
            len(self.unreadable),
            self.given_up_objects,
        )
        for family, value in zip((*GAUGES, *UPLOAD_FAMILIES), (*values, *self.uploads), strict=True):
            yield family, [((), value)]


def collect(figures: StoreFigures | None) -> Iterator[tuple[Described, Samples]]:
    """Every family, without values where there is no store."""
    yield from ((family, ()) for family in FAMILIES) if figures is None else figures.collect()
