"""Has the cluster let go of objects in its store: lineages that segments cover, WALs that no leader reads, and topics that are deleted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from horolog.base.clock import Clock
from horolog.broker.base.answers import run
from horolog.broker.bucket.bucket_sweep import sweep_topics, sweep_wals
from horolog.broker.bucket.led_segments import SegmentCare
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.on_record.cluster_file import Place

TAILS_EVERY_S = 2.0
WALS_EVERY_S = 600.0
TOPICS_EVERY_S = 86_400.0
LISTS_IN_HISTORY = 8
"""So often the WALs are listed within the time that a restore may go back: there are many objects, and none goes before."""

_Known = TypeVar("_Known", bytes, Wal)


class LetGo(NamedTuple):
    """What the upkeep reports to the cluster, and asks of it."""

    tails_covered: Callable[[Mapping[Place, int]], object] = lambda _: None
    """Segments have all records of earlier leaders, in partitions that this broker leads in these epochs."""
    spent: Callable[[Collection[Wal]], Collection[Wal]] = lambda _: ()
    """Finds the WALs that no broker writes or reads any more, if it is this broker's turn to remove them."""
    gone: Callable[[Collection[bytes]], Collection[bytes]] = lambda _: ()
    """Finds the ids of deleted topics, if it is this broker's turn to remove their objects."""


class StoreUpkeep:
    """The upkeep by one broker. `look` is called now and then."""

    def __init__(
        self,
        store: StoreAccess,
        clock: Clock,
        new_nonce: Callable[[], bytes],
        cluster: LetGo,
        care: SegmentCare,
    ) -> None:
        self._store = store
        self._clock = clock
        self._new_nonce = new_nonce
        self._cluster = cluster
        self._care = care
        self._gone_since_s: dict[bytes | Wal, float] = {}
        """When it was first seen that topics are gone, and that WALs are spent."""
        now = clock.monotonic()
        self._tails_s, self._wals_s, self._topics_s = now, now, now
        self._is_sweeping = False

    def __repr__(self) -> str:
        return f"<StoreUpkeep{': sweeping' if self._is_sweeping else ''}>"

    def look(self, covered: Callable[[], Mapping[Place, int]]) -> None:
        """`covered` finds the partitions whose earlier leaders' records all lie in segments, with the epochs that they are led in."""
        now = self._clock.monotonic()
        if now - self._tails_s >= TAILS_EVERY_S:
            self._tails_s = now
            self.let_go_of_tails(covered())
        if not self._is_sweeping and now - self._wals_s >= max(
            WALS_EVERY_S, self._care.history_ms() / 1000 / LISTS_IN_HISTORY
        ):
            self._wals_s, self._is_sweeping = now, True
            run(self._sweep_wals())
        if not self._is_sweeping and now - self._topics_s >= TOPICS_EVERY_S:
            self._topics_s, self._is_sweeping = now, True
            run(self._sweep_topics())

    def let_go_of_tails(self, epochs: Mapping[Place, int]) -> None:
        """Segments have all records of earlier leaders of these partitions."""
        if epochs:
            self._cluster.tails_covered(epochs)

    async def _sweep_wals(self) -> None:
        await sweep_wals(self._store, self._spent, self._new_nonce)
        self._is_sweeping = False

    async def _sweep_topics(self) -> None:
        """Objects of a topic that this broker does not know yet are young."""
        before_ms = self._clock.wall_ms() - max(self._care.delete_delay_ms(), int(WALS_EVERY_S * 1000))
        await sweep_topics(self._store, self._gone, before_ms)
        self._is_sweeping = False

    def _spent(self, wals: Collection[Wal]) -> Collection[Wal]:
        """WALs that are spent, and that no restore reads."""
        return self._outlived(wals, self._cluster.spent(wals))

    def _gone(self, topic_ids: Collection[bytes]) -> Collection[bytes]:
        """Topics that are gone, and that no restore brings back."""
        return self._outlived(topic_ids, self._cluster.gone(topic_ids))

    def _outlived(self, found: Collection[_Known], gone: Collection[_Known]) -> Collection[_Known]:
        """Those that have been gone for as long as their history stays. A topic that was not known yet when it was found is not gone."""
        now_s = self._clock.monotonic()
        for one in set(found).difference(gone):
            self._gone_since_s.pop(one, None)
        self._gone_since_s |= {one: now_s for one in gone if one not in self._gone_since_s}
        return [one for one in gone if (now_s - self._gone_since_s[one]) * 1000 >= self._care.history_ms()]
