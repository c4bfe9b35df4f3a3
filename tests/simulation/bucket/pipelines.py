"""Idempotent producers with five batches under way, as librdkafka is one, beside the other clients of the simulated company.

- a producer is never made to begin a new epoch, in which it would send again what the log has already
- its records are in the log once, in order, and at the offsets that it was given
"""

import json
from collections import deque
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.commit.committer import InternalCommit
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.simulation.bucket.company_world import FAULTS_END_S, CompanyWorld, PromiseBroken
from tests.simulation.bucket.log_process import LogProcess
from tests.simulation.bucket.planted_log import SMALL
from tests.simulation.bucket.processes import PARTITIONS, TOPIC
from tests.support.log_model import NEW

UNDER_WAY = 5
ANSWERED_WITHIN_S = 10.0
WRITES_UNTIL_S = FAULTS_END_S + 20
PRODUCERS = 3
NEVER = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
)


class Line:
    """A connection to a process: requests arrive one after the other, and are lost when the process ends."""

    def __init__(self, process):
        self.process, self._sent = process, deque()

    def send(self, request):
        self._sent.append(request)
        self.process.world.schedule.later(
            self.process.world.chance.uniform(0.0005, 0.02), lambda: self.process.when_awake(self._arrive)
        )

    def _arrive(self):
        self._sent.popleft()(self.process)


class Pipelined:
    """One producer's records in one partition."""

    def __init__(self, world, producer_id, place):
        self.world, self.producer_id, self.place = world, producer_id, place
        self.next_sequence = self.acknowledged = 0
        self.unanswered = {}
        """The sequences under way, with when they were sent; all that follow on `acknowledged` are sent again once none is left."""
        self.is_draining, self.line, self.sent_upto = False, None, 0
        world.schedule.later(world.chance.uniform(2, 6), self.turn)

    def turn(self):
        """Send what can be sent, and look for answers that will not come."""
        now = self.world.schedule.now
        if now < FAULTS_END_S + 50:
            self.world.schedule.later(self.world.chance.uniform(0.001, 0.03), self.turn)
        oldest_s = min(self.unanswered.values(), default=now)
        if self.line is not None and (self.line.process.is_dead or now - oldest_s > ANSWERED_WITHIN_S):
            self.unanswered, self.is_draining, self.line = {}, True, None
        if self.is_draining:
            if self.unanswered:
                return
            self.is_draining, self.sent_upto = False, self.acknowledged
        self._send(now)

    def _send(self, now):
        if self.line is None:
            leader = self._leader()
            self.line = None if leader is None else Line(leader)
        if self.line is None or len(self.unanswered) >= UNDER_WAY:
            return
        if self.sent_upto == self.next_sequence:
            if now >= WRITES_UNTIL_S:
                return
            self.next_sequence += 1
        sequence, self.sent_upto = self.sent_upto, self.sent_upto + 1
        self.unanswered[sequence] = now
        self.line.send(partial(self._produce, self.line, sequence))

    def _leader(self):
        """The process that leads as any process knows it: it may not serve the partition yet, or no more."""
        known = [one for one in self.world.processes() if one.watch]
        if not known:
            return None
        node = self.world.chance.choice(known).changes.state.leader(*self.place)
        found = self.world.machines[node].process if node in self.world.machines else None
        return found if found is not None and found.listens else None

    def record(self, sequence):
        return (f"p{self.producer_id}", sequence)

    def _produce(self, line, sequence, process):
        """In the broker: the request has arrived."""
        answer = partial(self._answered, line, sequence)
        led = process.served.get(self.place)
        if led is None:
            answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        assert isinstance(led.partition, ShippedPartition)
        data = encode_batch(
            [Record(0, 5, 0, b"k", json.dumps(self.record(sequence)).encode())],
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        try:
            appended = led.partition.append(bytes(data), process.wall_ms(), produce_version=NEW)
        except RefusedSet as refused:
            answer(refused.code, -1)
            return

        def done(failures):
            code = failures[led.partition].error if failures else ErrorCode.NONE
            answer(code, appended[0])

        process.log.committer.submit(InternalCommit([led.partition], done, durable=False))

    def _answered(self, line, sequence, code, offset):
        self.world.schedule.later(
            self.world.chance.uniform(0.0005, 0.005), lambda: self._learn(line, sequence, code, offset)
        )

    def _learn(self, line, sequence, code, offset):
        if line is not self.line or sequence not in self.unanswered:
            return
        if code in NEVER:
            raise PromiseBroken(
                f"{self.record(sequence)} is refused with {code.name}, {self.acknowledged} were expected"
            )
        del self.unanswered[sequence]
        if code:
            self.is_draining = True
            self.line = self.line if self.unanswered else None
        elif sequence == self.acknowledged:
            self.acknowledged += 1
            self.world.tell(self.place, offset, self.record(sequence))
        else:
            self.is_draining = True  # it was written behind one that was refused: both are sent again


class PipelinedWorld(CompanyWorld):
    """The company with real logs, and producers of this kind."""

    def __init__(self, seed):
        super().__init__(seed, process_class=LogProcess)
        self.producers = [
            Pipelined(self, 100 + number, (TOPIC, index)) for number in range(PRODUCERS) for index in range(PARTITIONS)
        ]

    def check_end(self):
        super().check_end()
        for one in self.producers:
            if one.acknowledged < one.next_sequence:
                raise PromiseBroken(f"{one.record(one.acknowledged)} is not acknowledged of {one.next_sequence}")
            (process,) = [each for each in self.processes() if each.high_watermark(one.place) is not None]
            name = one.record(0)[0]
            log = process.served[one.place].records
            found = [sequence for who, sequence in log[: len(log)] if who == name]
            if found != list(range(one.next_sequence)):
                raise PromiseBroken(f"{name} has other records in {one.place[1]} than it has sent: {found}")


def outcome_of(seed):
    """The broken promise of a seed, or nothing."""
    with ExitStack() as stack:
        for module, name, value in SMALL:
            stack.enter_context(patch.object(module, name, value))
        return PipelinedWorld(seed).run()
