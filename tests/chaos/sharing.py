"""Members of a share group in a chaos run: they accept most records, release some, and note each delivery and each settlement."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.chaos.deliveries import Deliveries, Delivery, Settlement
from tests.soak.workload import Soak
from tests.support.history import Place, Write

QUEUED = "queued"
SHARERS = "sharers"
GROUP_SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "15000",
    "share.delivery.count.limit": "10",
}
"""A record is not given up however many leaders of its partition are killed while it is delivered."""
CONFIGURED_WITHIN_S = 60.0
POLL_S = 0.2
SETTLED_WITHIN_S = 10.0
DRAINED_WITHIN_S = 60.0
RELEASE_SHARE = 0.1
BUFFERED_POLLS = 3
"""What a poll gives was asked for by it or one of the two before: the library fetches ahead."""


def set_up(address: str) -> None:
    """Give the group its settings, before it has members."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in GROUP_SETTINGS.items()
    ]
    group = ConfigResource(ConfigResource.Type.GROUP, SHARERS, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in admin.incremental_alter_configs([group]).values():
        future.result(CONFIGURED_WITHIN_S)


class Sharer:
    """One member, in the thread of its own that `run` is called in."""

    def __init__(self, soak: Soak, deliveries: Deliveries, name: str) -> None:
        self._soak, self._deliveries, self._name = soak, deliveries, name
        self._chance = soak.chance(name)
        self._asked_at: deque[float] = deque(maxlen=BUFFERED_POLLS)
        self._unanswered: dict[tuple[Place, int], tuple[int, bool, float] | None] = {}
        """The delivery count of what has no answer yet, whether it was accepted, and since when it is here; None if two answers are due."""

    def run(self) -> None:
        """Goes on behind the end of the run until nothing is left to deliver, for a while."""
        how = {"bootstrap.servers": self._soak.address, "group.id": SHARERS, "share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer({**how, "log_level": 0})
        consumer.set_acknowledgement_commit_callback(self._answered)
        consumer.subscribe([QUEUED])
        while not self._soak.stop.is_set():
            self._work(consumer)
        latest = time.monotonic() + DRAINED_WITHIN_S
        while self._is_work_left() and time.monotonic() < latest:
            self._work(consumer)
        consumer.close()

    def _is_work_left(self) -> bool:
        acknowledged = acknowledged_values(self._soak)
        return (
            len(acknowledged) < len(queued(self._soak))
            or bool(self._deliveries.not_delivered(acknowledged))
            or any(self._deliveries.awaited())
        )

    def _work(self, consumer: ShareConsumer) -> None:
        self._asked_at.append(time.monotonic())
        try:
            messages = [one for one in consumer.poll(POLL_S) if not self._is_error(one)]
            for message in messages:
                self._settle(consumer, message)
            if messages:
                consumer.commit_sync(SETTLED_WITHIN_S)
        except KafkaException as error:
            self._soak.count(f"share: {error.args[0].name()}")

    def _is_error(self, message: Message) -> bool:
        error = message.error()
        if error is not None:
            self._soak.count(f"share: {error.name()}")
        return error is not None

    def _settle(self, consumer: ShareConsumer, message: Message) -> None:
        delivery = delivery_of(message, self._asked_at[0])
        self._deliveries.delivered.append(delivery)
        is_accepted = self._chance.random() >= RELEASE_SHARE
        consumer.acknowledge(message, AcknowledgeType.ACCEPT if is_accepted else AcknowledgeType.RELEASE)
        key = delivery.place, delivery.offset
        self._unanswered[key] = None if key in self._unanswered else (delivery.count, is_accepted, time.monotonic())

    def _answered(self, offsets: Mapping[TopicPartition, set[int]], error: KafkaException | None) -> None:
        at = time.monotonic()
        for partition, found in offsets.items():
            place = partition.topic, partition.partition
            for offset in found:
                if (due := self._unanswered.pop((place, offset), None)) is not None:
                    count, is_accepted, had_at = due
                    self._soak.count(_outcome(error, is_accepted))
                    if error is None:
                        self._deliveries.settled.append(Settlement(place, offset, count, is_accepted, had_at, at))


def _outcome(error: KafkaException | None, is_accepted: bool) -> str:
    if error is not None:
        return f"share: {'accept' if is_accepted else 'release'} without success: {error.args[0].name()}"
    return "share: accepted" if is_accepted else "share: released"


def delivery_of(message: Message, asked_at: float) -> Delivery:
    topic, partition, offset, count = message.topic(), message.partition(), message.offset(), message.delivery_count()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return Delivery((topic, partition), offset, message.value() or b"", count or 0, asked_at)


def queued(soak: Soak) -> dict[bytes, Write]:
    with soak.guard:
        writes = soak.history.writes.copy()
    return {value: write for value, write in writes.items() if write.place[0] == QUEUED}


def acknowledged_values(soak: Soak) -> list[bytes]:
    """The records that members have to be given."""
    return [value for value, write in queued(soak).items() if write.is_acknowledged]
