"""The audit as a topic: each event is a record, its kind the key, in a partition that this broker leads.

- The topic is made at the first event, with a partition for each broker of the cluster. If it exists, and this broker leads none of its
  partitions, it gets one more. From then on it is an ordinary topic: clients with permission may read it, configure it, delete it.
- Events are appended as coordinators append theirs, at the end of the event loop's tick. No request waits for them, and they are synced
  as the topic's settings say.
- While the topic cannot be made or written, events wait and are retried every second. An event is lost if too many wait already, if the
  topic refuses it, or if its write fails. Lost events are counted, and one line of the log reports them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Final

from horolog.base.clock import Clock
from horolog.broker.base.metrics import Counter
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet, own_batch
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import Entry

log = logging.getLogger(__name__)

MOST_WAITING: Final = 20_000
MOST_RECORDS: Final = 200
"""Of one batch, which keeps it well below the size that topics take."""
RETRY_S: Final = 1.0
OVERRIDES: Final = {"cleanup.policy": "delete"}
"""Whatever the broker's default is: events are kept for their time, not for their keys."""
OTHERS_WERE_FIRST: Final = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_PARTITIONS)


class AuditTopic:
    """A `Sink` of `security.audit`."""

    def __init__(
        self,
        name: str,
        node: int,
        cluster: Cluster,
        committer: Committer,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        lost: Counter,
    ) -> None:
        self._name = name
        self._node = node
        self._cluster = cluster
        self._committer = committer
        self._clock = clock
        self._loop = loop
        self._lost = lost
        self._waiting: deque[Entry] = deque()
        self._is_due = False
        self._is_making = False
        self._is_failing = False

    def __repr__(self) -> str:
        return f"<AuditTopic {self._name}: {len(self._waiting)} events waiting>"

    def open(self) -> None:
        """The topic is made when it is needed."""

    def take(self, event: str, line: bytes) -> None:
        if self._cluster.settings.horolog_read_only:
            self._lose(1, "this broker only reads its data folder (horolog.read.only)")
            return
        if len(self._waiting) >= MOST_WAITING:
            self._lose(1, "too many events wait for it")
            return
        self._waiting.append((event.encode(), line))
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._write)

    def flush(self) -> None:
        self._write()

    def close(self) -> None:
        if self._waiting:
            self._lose(len(self._waiting), "the broker is stopping")
            self._waiting.clear()

    def _write(self) -> None:
        self._is_due = False
        while self._waiting:
            partition = self._partition()
            if partition is None or not self._takes(partition):
                self._is_due = True
                self._loop.call_later(RETRY_S, self._write)
                return
            self._append(partition, list(islice(self._waiting, MOST_RECORDS)))

    def _takes(self, partition: Partition) -> bool:
        try:
            partition.check_takes_appends()
        except StorageFault as fault:
            self._tell(str(fault))
            return False
        return self._committer.has_room

    def _append(self, partition: Partition, entries: list[Entry]) -> None:
        now_ms = self._clock.wall_ms()
        offset, epoch = partition.log_end_offset, partition.leader_epoch
        try:
            checked = own_batch(entries, offset, partition.config, now_ms, leader_epoch=epoch)
            partition.append_checked(checked, now_ms)
        except (RefusedSet, StorageFault) as error:
            self._lose(len(entries), str(error))
        else:
            written = partial(self._written, len(entries))
            self._committer.submit_own((partition,), written, durable=False, records=len(entries))
        for _ in entries:
            self._waiting.popleft()

    def _written(self, count: int, failures: Failures) -> None:
        for fault in failures.values():
            self._lose(count, str(fault))
            return
        self._is_failing = False

    # -- the topic

    def _partition(self) -> Partition | None:
        """A partition that is led here; None while it is being made."""
        led = self._led_here()
        if not led and not self._is_making:
            self._make()
            led = self._led_here()
        return led[0] if led else None

    def _led_here(self) -> list[Partition]:
        topic = self._cluster.topics.get(self._name)
        return [] if topic is None else topic.led_here

    def _make(self) -> None:
        cluster = self._cluster
        topic = cluster.topics.get(self._name)
        self._is_making = True
        if topic is None:
            assignments = {index: (node,) for index, node in enumerate(cluster.nodes)}
            cluster.create_topics([NewTopic(self._name, overrides=OVERRIDES, assignments=assignments)], self._made)
        else:
            more = NewPartitions(self._name, topic.partition_count + 1, [(self._node,)])
            cluster.add_partitions([more], lambda failures: self._made(failures.values()))

    def _made(self, results: Iterable[object]) -> None:
        self._is_making = False
        for result in results:
            if isinstance(result, ClusterError) and result.code not in OTHERS_WERE_FIRST:
                self._tell(f"it could not be created: {result}")

    # -- lost events

    def _lose(self, count: int, reason: str) -> None:
        self._lost.value += count
        self._tell(f"events are lost: {reason}")

    def _tell(self, reason: str) -> None:
        """Log the reason once, until something is written."""
        if not self._is_failing:
            self._is_failing = True
            log.error("topic %s: the audit cannot be written: %s", self._name, reason)
