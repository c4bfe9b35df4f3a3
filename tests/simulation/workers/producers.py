"""A transactional producer that has several batches of a partition on their way at once, as real ones have."""

from __future__ import annotations

from functools import partial
from typing import Any

from horolog.protocol.errors import ErrorCode
from tests.simulation.model import Attempt, PartitionModel
from tests.simulation.producers import STORAGE_ERRORS, note_answer
from tests.simulation.transactions import TransactionalProducer

MOST_AT_ONCE = 3
PIPELINE_CHANCE = 0.5
VERSION = 12


class PipeliningProducer(TransactionalProducer):
    """Batches go over one connection, so none may overtake another: a later one is not refused for its place behind one that was taken."""

    def _begin_anew(self) -> None:
        self._refused_by_disk: set[Attempt] = set()
        super()._begin_anew()

    def _write(self) -> None:
        if self.chance.random() >= PIPELINE_CHANCE:
            super()._write()
            return
        topic, partition = self.simulation.transactional_partition()
        sequence = self._sequences.get(partition, 0)
        batches = []
        for _ in range(self.chance.randint(2, MOST_AT_ONCE)):
            attempt, request = self._batch(topic, partition, sequence, VERSION)
            sequence += len(attempt.records)
            batches.append((attempt, request))
        codes: dict[int, int] = {}

        def send() -> None:
            self._waiting = True
            codes.clear()
            for place, (attempt, request) in enumerate(batches):
                self.simulation.sent_again(attempt)
                if codes:
                    done(place, None)  # nothing is sent behind what could not be sent
                else:
                    self.client.send(request, VERSION, partial(done, place))

        def done(place: int, answer: Any) -> None:
            if self._again is not send:
                return
            codes[place] = note_answer(self.simulation, partition, batches[place][0], -1, answer)
            if len(codes) == len(batches):
                self._waiting = False
                self._all_answered(partition, [attempt for attempt, _ in batches], codes, sequence)

        self._again = send
        send()

    def _all_answered(
        self, partition: PartitionModel, attempts: list[Attempt], codes: dict[int, int], next_sequence: int
    ) -> None:
        told = [codes[place] for place in range(len(attempts))]
        self._refused_by_disk.update(one for one, code in zip(attempts, told, strict=True) if code in STORAGE_ERRORS)
        for place, code in enumerate(told):
            if not self._refused_by_disk.isdisjoint(attempts[: place + 1]):
                break  # what came behind may have been taken as the first of its producer
            if attempts[place] in partition.lost_to_power:
                break  # what came behind may have outlived it, and then its place is taken
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not any(told[:place]):
                self.simulation.fail(f"{attempts[place]} of {partition} was overtaken: {told}")
        again = self.simulation.produced_again
        if any(code < 0 or code in again for code in told):
            return  # all of them are sent again, in their order
        self._again = None
        self._sequences[partition] = next_sequence
        self._doomed = self._doomed or any(told)
