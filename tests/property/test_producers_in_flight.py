"""Idempotent producers with five batches on their way and answers that get lost, over stops, kills and power cuts: nothing is refused,
nothing is twice, nothing that was answered is lost.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from horolog.broker.log.recovery.rescan import set_active_apart
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.log_model import NEW, NOW_MS, Model, read_all, small_config

MOST_IN_FLIGHT = 5
STEPS = 150


@dataclass
class Sent:
    """A batch that its producer has no answer for."""

    sequence: int
    count: int
    place: int = -1
    is_durable: bool = False

    def values(self, producer_id: int) -> list[bytes]:
        return [b"%d-%d" % (producer_id, self.sequence + n) for n in range(self.count)]


@dataclass
class Producer:
    id: int
    next_sequence: int = 0
    in_flight: deque[Sent] = field(default_factory=deque)


class Run:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Model(small_config(segment_bytes=self.chance.choice((900, 3000, 100_000))))
        self.producers = [Producer(number) for number in (7, 8, 9)]
        self.answered: dict[bytes, int] = {}

    def step(self) -> None:
        kind = self.chance.choices(("send", "flush", "sync", "seal", "end"), (10, 5, 4, 1, 1))[0]
        getattr(self, kind)()

    def send(self) -> None:
        producer = self.chance.choice(self.producers)
        if len(producer.in_flight) < MOST_IN_FLIGHT:
            sent = Sent(producer.next_sequence, self.chance.choice((1, 1, 2, 7)))
            producer.next_sequence += sent.count
            producer.in_flight.append(sent)
            self.append(producer, sent)

    def append(self, producer: Producer, sent: Sent) -> None:
        records = [Record(n, NOW_MS, 0, b"k", value) for n, value in enumerate(sent.values(producer.id))]
        data = bytes(encode_batch(records, producer_id=producer.id, producer_epoch=0, base_sequence=sent.sequence))
        place = self.model.partition.append(data, NOW_MS, produce_version=NEW).base_offset
        assert not sent.is_durable or place == sent.place, f"{sent} of {producer} is told to be at {place}"
        sent.place = place

    def flush(self) -> None:
        self.model.flush()

    def sync(self) -> None:
        """Answers leave in the order of their requests, and any of the last may get lost."""
        self.flush()
        self.model.sync()
        for producer in self.producers:
            for sent in producer.in_flight:
                sent.is_durable = True
            for _ in range(self.chance.randint(0, len(producer.in_flight))):
                sent = producer.in_flight.popleft()
                for n, value in enumerate(sent.values(producer.id)):
                    self.answered[value] = sent.place + n

    def seal(self) -> None:
        """What comes with the checkpoints."""
        self.flush()
        if self.model.partition.segments[-1].end_bytes:  # as of a segment that was found damaged
            set_active_apart(self.model.partition, NOW_MS)
        self.model.partition.sync_state.save_producers(
            self.model.partition.producers, self.model.partition.log_end_offset
        )
        self.sync()

    def end(self) -> None:
        model = self.model
        how = self.chance.choice(("stop", "kill", "power"))
        if how == "stop":
            model.close_and_open()
            for sent in (one for producer in self.producers for one in producer.in_flight):
                sent.is_durable = True
        else:
            if how == "power":
                model.storage.crash(self.chance)
            model.reopen(was_clean=False)
        for producer in self.producers:
            for sent in producer.in_flight:
                self.append(producer, sent)

    def check(self) -> None:
        self.flush()
        rows = read_all(self.model.partition)
        values = [value or b"" for _, _, value in rows]
        found = {value: rows[number][0] for number, value in enumerate(values)}
        assert len(values) == len(set(values)), "nothing is twice"
        for producer in self.producers:
            own = [int(one.partition(b"-")[2]) for one in values if one.startswith(b"%d-" % producer.id)]
            assert own == list(range(producer.next_sequence)), "all is there, in order"
        assert found.items() >= self.answered.items()


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_refused_twice_or_lost(seed: int) -> None:
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.end()
    run.check()
