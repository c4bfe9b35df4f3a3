"""Principals of the simulation: they write, read and log in, and see whether they are refused exactly while they have no right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.base.acl_types import Operation
from horolog.broker.base.principal import USER, Principal
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from horolog.protocol.records.entries import records_of_entry
from horolog.protocol.records.head import heads_in
from tests.simulation.access import DOOR, ITERATIONS, USERS, Access, Watch
from tests.simulation.model import Attempt, Level, PartitionModel
from tests.simulation.producers import Actor, Answered, PlainProducer
from tests.support.sasl import ScramPeer

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MECHANISM = "SCRAM-SHA-256"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_ASKED = {ErrorCode.UNKNOWN_TOPIC_ID}
"""Codes that are told without a look at rights."""
WAITS_MS, MANY_BYTES = (3000, 60_000), 1_000_000


class Verdicts:
    """Holds answers to one principal against all that is known of its rights."""

    def __init__(self, simulation: Simulation, access: Access, who: str, operation: Operation) -> None:
        self._simulation = simulation
        self._access = access
        self._who = who
        self._operation = operation

    def __repr__(self) -> str:
        return f"<Verdicts for {self._operation.name} of {self._who}>"

    def watch(self, topic: str) -> Watch:
        return self._access.watch_right(self._who, self._operation, topic)

    def check(self, topic: str, watch: Watch, since_s: float, code: int | None) -> bool:
        """Whether it was surely denied all the time; `code` is None where nothing was answered."""
        right = watch.end()
        if not self._simulation.rules_hold_since(since_s):
            return False
        if code is not None and code not in NOT_ASKED:
            allowed = code != DENIED
            self._simulation.world.counts["granted" if allowed else "denied"] += 1
            if allowed not in right:
                told = "is allowed" if allowed else "is refused"
                self._simulation.fail(f"{self._who} {told} to {self._operation.name} {topic}, and it may be {right}")
        return right == {False}


class GuardedProducer(PlainProducer):
    """One that may write what the rules allow it."""

    def __init__(self, simulation: Simulation, access: Access, who: str) -> None:
        super().__init__(simulation, who)
        self.principal = Principal(USER, who)
        self._verdicts = Verdicts(simulation, access, who, Operation.WRITE)

    def _watched(self, partition: PartitionModel, attempt: Attempt, answered: Answered | None) -> Answered | None:
        watch, since_s = self._verdicts.watch(partition.topic), self.world.clock.monotonic()

        def checked(answer: Any) -> None:
            code = None if answer is None else answer.responses[0].partition_responses[0].error_code
            if self._verdicts.check(partition.topic, watch, since_s, code) and attempt.level == Level.UNKNOWN:
                attempt.level = Level.REFUSED  # whatever it was told
            if answered is not None:
                answered(answer)

        if answered is not None:
            return checked
        checked(None)
        return None


class GuardedConsumer(Actor):
    """Fetches what the rules allow it to read, some of it as it comes."""

    def __init__(self, simulation: Simulation, access: Access, who: str) -> None:
        super().__init__(simulation, f"{who} reads")
        self.principal = Principal(USER, who)
        self._verdicts = Verdicts(simulation, access, who, Operation.READ)
        self._waiting = False

    def step(self) -> None:
        topic, partition = self.simulation.any_partition()
        if self._waiting:
            return
        waits = self.chance.random() < 0.5
        end = partition.rows[-1].offset + 1 if partition.rows else 0
        offset = end if waits else self.chance.randint(0, end)
        asked = FetchPartition(partition=partition.index, fetch_offset=offset, partition_max_bytes=MANY_BYTES)
        request = FetchRequest(
            max_wait_ms=self.chance.choice(WAITS_MS) if waits else 0,
            min_bytes=self.chance.choice((1, MANY_BYTES)) if waits else 0,
            topics=[FetchTopic(topic=topic.name, partitions=[asked])],
        )
        watch, since_s = self._verdicts.watch(topic.name), self.world.clock.monotonic()
        self._waiting = True
        self.client.send(
            request, self.chance.choice((4, 7, 11)), lambda answer: self._answered(partition, watch, since_s, answer)
        )

    def _answered(self, partition: PartitionModel, watch: Watch, since_s: float, answer: Any) -> None:
        self._waiting = False
        if answer is None:
            self._verdicts.check(partition.topic, watch, since_s, None)
            return
        (told,) = answer.responses[0].partitions
        self.world.note("guarded fetch", self.name, partition, told.error_code, len(told.records or b""))
        self._verdicts.check(partition.topic, watch, since_s, told.error_code)
        if watch.denied_from is not None and self.simulation.rules_hold_since(since_s):
            self._check_nothing_new(partition, watch.denied_from, bytes(told.records or b""))

    def _check_nothing_new(self, partition: PartitionModel, denied_from: int, data: bytes) -> None:
        """A fetch that was waiting when it was denied gives nothing that was sent after that."""
        if partition.damaged:
            return
        for entry in heads_in(data):
            for record in records_of_entry(data, entry):
                number, is_ours, _ = (record.value or b"").partition(b":")
                if is_ours and int(number) >= denied_from:
                    self.simulation.fail(f"{self.name} {record.value!r} of {partition}, sent after it was denied")


class Visitor(Actor):
    """Comes to the door as a user, with a password that may be right."""

    def __init__(self, simulation: Simulation, access: Access) -> None:
        super().__init__(simulation, "visitor")
        self._access = access
        self._waiting = False

    def step(self) -> None:
        if self._waiting:
            return
        self._waiting = True
        user, password = self.chance.choice(USERS), self.chance.choice(sorted(ITERATIONS))
        watch = self._access.watch_login(user, password)
        peer = ScramPeer(MECHANISM, user, password)
        client = self.world.connect(door=DOOR)

        def greeted(answer: Any) -> None:
            if answer is None:
                ended(None)
            else:
                client.send(SaslAuthenticateRequest(auth_bytes=peer.first()), 2, challenged)

        def challenged(answer: Any) -> None:
            if answer is None or answer.error_code:
                ended(answer)
            else:
                client.send(SaslAuthenticateRequest(auth_bytes=peer.last(bytes(answer.auth_bytes))), 2, ended)

        def ended(answer: Any) -> None:
            self._waiting = False
            right = watch.end()
            if answer is not None:
                is_in = not answer.error_code
                self.world.note("came in" if is_in else "was not let in", user, password)
                if is_in not in right:
                    self.simulation.fail(f"{user} comes in by {password}: {is_in}, and it may be {right}")
                if is_in and not peer.believes(bytes(answer.auth_bytes)):
                    self.simulation.fail(f"{user} is not shown that the broker knows the keys")
            client.hang_up()

        client.send(SaslHandshakeRequest(mechanism=MECHANISM), 1, greeted)
