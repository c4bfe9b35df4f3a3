"""What goes wrong between workers: one ends at any step, one hangs, connections are lost or slow, and leaders change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.broker.base.topic_names import INTERNAL_TOPICS, TRANSACTION_STATE
from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.legible_record import is_legible
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from tests.simulation.model import Attempt, Level
from tests.simulation.workers.network import DELAYS_MS, SLOW_MS
from tests.simulation.workers.world import SimulatedWorker, WorkersWorld
from tests.simulation.world import DATA, SimulationFailure

if TYPE_CHECKING:
    from tests.simulation.workers.simulation import WorkersSimulation

CHANGES_UNTIL_THE_END = (1, 2, 3, 5, 8, 13, 21, 40, 80)
MESSAGES_UNTIL_THE_END = (1, 1, 2, 3, 5, 8, 13)
HANGS_MS = (50, 300, 1000, 3000, 9000, 20_000)
SLOW_FOR_MS = (500, 2000, 8000)
WRITES_AT_A_HAND_OVER = 30
LATE_MS, MOST_LOOKS = 3000, 6
GOES_ON_MS = (1, 10, 100, 300)
JOURNAL_FAULTS = ("write", "torn write", "sync", "read", "truncate")
PREFERRED = 0
LOOKS = 2
LEDGER = "ledger"


class WorkerChaos:
    """Does it, one thing at a time."""

    def __init__(self, simulation: WorkersSimulation) -> None:
        self._simulation = simulation
        self._world: WorkersWorld = simulation.workers_world
        self._chance = simulation.world.chance

    def _any_process(self) -> SimulatedWorker | None:
        there = self._world.processes
        return self._chance.choice(there) if there else None

    # -- ends

    def end_worker(self) -> None:
        process = self._any_process()
        if process is not None:
            self._world.note("worker is killed", process.node)
            process.end()

    def end_worker_at_a_change(self) -> None:
        """It ends at its n-th change of the disk from now."""
        process = self._any_process()
        if process is not None:
            changes = self._chance.choice(CHANGES_UNTIL_THE_END)
            self._world.note("end of worker is set", process.node, changes)
            process.storage.power_off_after(changes)

    def end_worker_at_a_message(self) -> None:
        """It ends when it is about to send its n-th message to another worker or to the supervisor, or has just sent it."""
        process = self._any_process()
        if process is None:
            return
        number, has_left = self._chance.choice(MESSAGES_UNTIL_THE_END), self._chance.random() < 0.5
        self._world.note("end of worker at message", process.node, number, has_left)
        self._world.network.end_at_message(process.loop, number, process.end, has_left=has_left)

    def lose_an_entry(self) -> None:
        """A worker ends when it has written to the journal whom a partition goes to, before the disk has it; others go on, and the power goes."""
        name, index = self._any_place()
        others = [node for node in self._world.nodes if node not in self._world.leaders(name, index)]
        if not others:
            return
        self._end_after_write_to(JOURNAL)
        self._move(name, index, self._chance.choice(others))
        if not self._world.loop.run_until(lambda: not self._world.is_whole, LATE_MS):
            return
        for _ in range(self._chance.randint(1, MOST_LOOKS)):
            self._world.loop.advance(self._chance.choice(GOES_ON_MS))
            self._simulation.look_at_states()
        self._lose_power()

    def lose_a_decision(self) -> None:
        """The same with the decision on a transaction; the power goes while a successor writes its markers."""
        if not self._simulation.decide_something():
            return
        self._end_after_write_to(f"{TRANSACTION_STATE}-")
        if not self._world.loop.run_until(lambda: not self._world.is_whole, LATE_MS):
            return
        before = self._bytes_in_logs()
        if not self._world.loop.run_until(lambda: self._bytes_in_logs() != before, LATE_MS):
            return
        for _ in range(self._chance.randrange(MOST_LOOKS)):
            self._world.loop.step()
        self._world.counts["decision carried out"] += 1
        self._lose_power()

    def _bytes_in_logs(self) -> int:
        """Of topics that records of transactions are in."""
        storage = self._world.storage
        logs = (path for path in storage.files() if path.endswith(".log") and f"/{LEDGER}-" in path)
        return sum(storage.file_node(path).size for path in logs)

    def _end_after_write_to(self, part: str) -> None:
        parts = [part]
        for process in self._world.processes:
            process.storage.ends_after_write_to = parts
        self._world.note("end of workers after a write is set", part)

    def _lose_power(self) -> None:
        self._world.note("power goes after an end")
        self._simulation.end_all(power=True)

    def hurt_record(self) -> None:
        """A bit of what workers have recorded flips while they run: they know it all, and write it anew."""
        world = self._world
        processes = world.processes
        is_ending = any(one.storage.ends_at_a_change for one in processes) or world.storage._changes_left < ALL // 2
        if is_ending or len(processes) < 2 or not world.is_undisturbed_since(world.clock.monotonic()):
            return
        paths = [path for path in world.storage.files() if self._may_be_hurt(path)]
        path = self._chance.choice(sorted(paths))
        position = self._chance.randrange(world.storage.file_node(path).size)
        world.note("bit flip", path, position)
        world.counts["bit flip: record of workers"] += 1
        world.storage.corrupt(path, position, 1 << self._chance.randrange(8))
        for process in self._chance.sample(processes, len(processes)) * LOOKS:
            process.run(process.broker.cluster.changes.check_record)  # type: ignore[union-attr]
        world.loop.run_until(
            lambda: is_legible(world.storage, [DATA]) or len(world.processes) < len(processes), LATE_MS
        )
        if len(world.processes) == len(processes) and not is_legible(world.storage, [DATA]):
            raise SimulationFailure(f"{path} was hurt at {position}, and nobody has written it anew")

    def _may_be_hurt(self, path: str) -> bool:
        """Where a log starts inside of a segment stands in one file alone."""
        if path in (f"{DATA}/{JOURNAL}", f"{DATA}/{FILE_NAME}"):
            return True
        if not path.startswith(f"{DATA}/{worker_checkpoints.NAME}."):
            return False
        try:
            rows = worker_checkpoints.decode(self._world.storage.read_all(path)).rows
        except ValueError:
            return False
        return not any(row.log_start for row in rows.values())

    def stop_worker(self) -> None:
        """Somebody tells one of them to stop, and not the supervisor."""
        process = self._any_process()
        if process is not None and not process.is_stopping:
            self._world.note("worker stops", process.node)
            process.is_stopping = True
            self._world.stop_one(process)

    def end_supervisor(self) -> None:
        """And all workers with it."""
        self._world.note("supervisor ended")
        self._simulation.end_all(power=False)

    # -- hangs, and what lies between workers

    def hang(self) -> None:
        process = self._any_process()
        if process is None or process.hangs:
            return
        duration_ms = self._chance.choice(HANGS_MS)
        self._world.note("worker hangs", process.node, duration_ms)
        process.hangs = True
        self._world.network.loop.call_later(duration_ms / 1000, self._go_on, process)

    def _go_on(self, process: SimulatedWorker) -> None:
        if process.hangs and not process.has_ended:
            process.hangs = False
            process.woke_s = self._world.clock.monotonic()
            self._world.note("worker goes on", process.node)

    def cut(self) -> None:
        ends = self._world.network.between_processes()
        if ends:
            end = self._chance.choice(ends)
            self._world.note("connection cut")
            end.cut()

    def slow_down(self) -> None:
        """Messages take long for a while."""
        network = self._world.network
        if network.delays_ms is SLOW_MS:
            return
        duration_ms = self._chance.choice(SLOW_FOR_MS)
        self._world.note("messages are slow", duration_ms)
        network.delays_ms = SLOW_MS
        network.loop.call_later(duration_ms / 1000, self._speed_up)

    def _speed_up(self) -> None:
        if self._world.network.delays_ms is not DELAYS_MS:
            self._world.network.delays_ms = DELAYS_MS
            self._world.note("messages are fast")

    def fail_journal(self) -> None:
        """The disk does not take, or does not give, a part of what workers have decided."""
        kind = self._chance.choice(JOURNAL_FAULTS)
        self._world.note("fault", "journal", kind)
        self._world.counts[f"journal fault: {kind}"] += 1
        self._simulation.disk_is_failing()
        torn_bytes = self._chance.choice((1, 30, 100)) if kind == "torn write" else 0
        operation = "write" if kind == "torn write" else kind
        self._world.storage.fail(operation, JOURNAL, times=self._chance.choice((1, 1, 2)), torn_bytes=torn_bytes)

    def calm_down(self) -> None:
        """Nothing more goes wrong."""
        self._speed_up()
        for process in self._world.processes:
            self._go_on(process)
            process.storage.ends_after_write_to = []
            if process.storage.ends_at_a_change:
                process.storage.power_off_after(ALL)
        self._world.network.forget_ends()

    # -- who leads

    def hand_over(self) -> None:
        """Some tool moves a partition to some worker; any worker takes the request."""
        self._move(*self._any_place())

    def hand_over_amid_writes(self) -> None:
        """While producers write to it."""
        topic = self._simulation.any_topic()
        if topic is None or not topic.partitions:
            return
        partition = self._chance.choice(topic.partitions)
        others = [node for node in self._world.nodes if node not in self._world.leaders(topic.name, partition.index)]
        with self._simulation.written_to(topic, partition):
            self._move(topic.name, partition.index, self._chance.choice(others) if others else None)
            for _ in range(WRITES_AT_A_HAND_OVER):
                self._simulation.write()
                for _ in range(self._chance.choice((1, 2, 4))):
                    self._world.loop.step()
                self._world.deliver()

    def hand_over_coordinator(self) -> None:
        """Of transactions."""
        self._move(TRANSACTION_STATE, self._chance.randrange(3))

    def _move(self, name: str, index: int, target: int | None = None) -> None:
        node = self._world.any_node()
        if node is None:
            return
        target = self._chance.choice(self._world.nodes) if target is None else target
        self._world.note("hand over", name, index, target, "asked of", node)
        written = self._written_elsewhere(name, index, target)
        moved = ReassignablePartition(partition_index=index, replicas=[target])
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=[moved])])

        def answered(answer: Any) -> None:
            codes = None if answer is None else [one.error_code for each in answer.responses for one in each.partitions]
            self._world.note("handed over", name, index, target, codes)
            if codes == [0]:
                self._world.counts["hand-overs done"] += 1
                self._are_synced(written)

        self._send(node, request, 0, answered)

    def _written_elsewhere(self, name: str, index: int, target: int) -> list[Attempt]:
        """Written and perhaps not synced, at the worker that leads a partition now; nothing where that is the one it is to go to."""
        if not self._world.leaders(name, index).difference({target}):
            return []
        there = [one for one in self._simulation.existing_topics() if one.name == name]
        return [attempt for topic in there for attempt in topic.partitions[index].written_only()]

    def _are_synced(self, written: list[Attempt]) -> None:
        """Whoever hands a partition over has synced it before: nobody else would sync the segments that are complete."""
        for attempt in written:
            if attempt.level == Level.WRITTEN:
                self._world.counts["synced by a hand-over"] += 1
                attempt.level = Level.DURABLE

    def elect(self) -> None:
        """Some tool has a partition go back where it belongs."""
        node = self._world.any_node()
        if node is None:
            return
        name, index = self._any_place()
        self._world.note("elect", name, index, "asked of", node)
        request = ElectLeadersRequest(
            election_type=PREFERRED, topic_partitions=[TopicPartitions(topic=name, partitions=[index])]
        )

        def answered(answer: Any) -> None:
            results = [] if answer is None else answer.replica_election_results
            codes = [one.error_code for each in results for one in each.partition_result]
            self._world.note("elected", name, index, codes)

        self._send(node, request, 2, answered)

    def _send(self, node: int, request: Any, version: int, answered: Any) -> None:
        client = self._world.connect_to(node)
        if client is not None:
            client.send(request, version, answered)

    def _any_place(self) -> tuple[str, int]:
        """A partition of a topic that is there, internal ones among them."""
        if self._chance.random() < 0.3:
            return self._chance.choice(sorted(INTERNAL_TOPICS)), self._chance.randrange(3)
        topic = self._simulation.any_topic()
        if topic is None or not topic.partitions:
            return "nothing", 0
        return topic.name, self._chance.choice(topic.partitions).index
