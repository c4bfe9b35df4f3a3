"""The simulated machine with several workers on it: one disk, one clock, a process for each broker, and clients that find whom to ask.

`World` with one broker is the model: whatever asks it asks this one, too. Where a worker is away, clients look again and wait; what
cannot be asked again has no answer (`Unanswered`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

from horolog.broker.base.own_thread import OwnThread
from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.cluster import settling
from horolog.broker.cluster.cluster import random_topic_id
from horolog.broker.cluster.legible_record import until_legible
from horolog.broker.cluster.link import WorkerLink
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.settings import load
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import DataFolderError, StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.broker.workers.of_worker import of_worker
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import DescribeAclsRequest
from horolog.protocol.messages.configs import DescribeConfigsRequest
from horolog.protocol.messages.fetch import FetchRequest
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.list_offsets import ListOffsetsRequest
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.offsets import OffsetFetchRequest
from horolog.protocol.messages.scram import DescribeUserScramCredentialsRequest
from horolog.protocol.wire import Message
from tests.simulation.workers.machine import Machine
from tests.simulation.workers.network import DELAYS_MS, End, Network
from tests.simulation.workers.process import Process
from tests.simulation.workers.routing import (
    Coordinator,
    Leader,
    RoutedClient,
    View,
    is_misdirected,
    question_for,
    said_in,
    wanted_by,
)
from tests.simulation.workers.supervisor import Supervisor, Worker, link_of
from tests.simulation.world import DATA, Client, SimulationFailure, World, in_simulation

FIRST_NODE = 1
FIRST_PORT = 9093
SHARDS = "3"
GROWTH_BYTES = 800
MOST_START_MS = 60_000
MOST_STOP_MS = 60_000
MOST_ANSWER_MS = 60_000
TROUBLES = frozenset(
    {
        "worker ended",
        "worker serves",
        "worker stops",
        "worker hangs",
        "worker goes on",
        "connection cut",
        "messages are slow",
        "messages are fast",
        "fault",
        "healed",
    }
)
CALM_MS = 30_000
"""When nothing goes wrong any more, everything is served within this time."""
MOST_WAIT_MS = 4 * CALM_MS
"""And whatever goes wrong, nobody asks for longer: a worker that cannot start ends again and again, and it is never calm."""
ASK_AGAIN_MS = 100
REST_S = 1.0
SYNCS_AT_ONCE = ApiKey.DELETE_RECORDS.to_bytes(2, "big")
SOCKETS = "/sockets"
READS = (
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetFetchRequest,
)
"""What may be asked again when the answer is lost."""


class Unanswered(Exception):
    """A change was asked for, and nobody has said whether it was made."""


class SimulatedWorker(Process):
    """A process in which a broker runs; clients may connect once it is ready."""

    node = -1
    is_stopping = False
    woke_s = float("-inf")
    """When it went on after it had hung."""
    broker: Broker | None = None
    dispatcher: Dispatcher
    limits: ConnectionLimits
    link: WorkerLink


class ProcessClient(Client):
    """A client of one process: what it sends is taken when the process comes to it."""

    def __init__(self, process: SimulatedWorker, principal: Principal) -> None:
        super().__init__(process, principal)
        self.process = process

    @property
    def closed(self) -> bool:
        return self.process.has_ended or super().closed

    def _hand_over(self, data: bytes) -> None:
        self.process.loop.call_soon(self._receive, data)

    def _receive(self, data: bytes) -> None:
        if self.process.loop.is_beside_sync and data[4:6] == SYNCS_AT_ONCE:
            self._hand_over(data)
        elif not self._conversation.closing:
            self._conversation.receive(data)

    def _take(self) -> None:
        self._received += b"".join(self._conversation.take_output())
        if self._conversation.wants_turn and not self.process.hangs:
            self.process.run(self._conversation.resume_if_allowed)

    def hang_up(self) -> None:
        self.process.loop.call_soon(self._conversation.lost)
        self.lose()


class WorkersWorld(World):
    """See the module's docstring. `count` workers run from the next start on."""

    loop: Machine  # type: ignore[assignment]

    def __init__(self, seed: int, count: int, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(seed, settings)
        self.count = count
        self.network = Network(self.clock, self.chance)
        self.loop = Machine(self.clock, self.chance, self.network)
        self.supervisor: Supervisor
        self.trouble_s = 0.0
        """When something went wrong last."""
        self.asked_s = 0.0
        """When the last request of those that are waited for was begun."""
        self.is_excused: Callable[[], bool] = lambda: False
        """Whether something is wrong now that keeps requests from being served."""
        self._view = View(self)

    # -- brokers come and go

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(range(FIRST_NODE, FIRST_NODE + self.count))

    @property
    def processes(self) -> list[SimulatedWorker]:
        """Those that clients can ask, or could if they did not hang."""
        workers = self.supervisor.workers.values()
        running = (one.process for one in workers if one.is_ready and one.process is not None)
        return [one for one in running if isinstance(one, SimulatedWorker) and not one.has_ended]

    @property
    def has_lost_power(self) -> bool:
        return self.storage._changes_left <= 0

    def start(self) -> None:
        """Raises PowerCut where the machine ends meanwhile, and StorageFault where no worker starts."""
        self.starts += 1
        self.trouble()
        self.network.begin_anew()
        self.supervisor = Supervisor(self.loop, self.network, self.nodes, self._start_process, self.note)
        self.supervisor.start()
        self.loop.run_until(lambda: self._has_begun or self._cannot_begin, MOST_START_MS)
        if self.has_lost_power:
            raise PowerCut
        self.check_processes()
        if not self._has_begun:
            failure = self.supervisor.failure
            self.end()
            raise StorageFault(f"the workers do not start: {failure}")
        self.check_processes()
        self.supervisor.has_begun = True

    @property
    def _has_begun(self) -> bool:
        return len(self.processes) == self.count

    @property
    def _cannot_begin(self) -> bool:
        return self.has_lost_power or self.supervisor.ends > 0 or any(one.failures for one in self.loop.processes)

    def _start_process(self, worker: Worker, settles: bool, wire: End) -> Process:
        """A worker, or where there is to be one only a broker alone."""
        process = SimulatedWorker(f"worker {worker.node}", self.clock, self.chance, self.storage, self.network)
        process.node = worker.node
        process.link = link_of(process, worker.node, wire)
        process.run(lambda: process.loop.create_task(self._serve(process, settles)))
        return process

    async def _serve(self, process: SimulatedWorker, settles: bool) -> None:
        try:
            await self._start_broker(process, settles)
        except (StorageFault, DataFolderError) as fault:
            process.link.failed(str(fault), 1)
            process.storage.end()
            return
        process.link.ready()

    async def _start_broker(self, process: SimulatedWorker, settles: bool) -> None:
        storage, link, node = process.storage, process.link, process.node
        texts = {**self.given, "node.id": str(node)}
        for name in ("offsets.topic.num.partitions", "transaction.state.log.num.partitions"):
            texts[name] = SHARDS
        settings, _ = load(None, {}, texts)
        if settles and self.count > 1:
            settling.settle(storage, [DATA], self.clock, settings, self.nodes, random_topic_id)
        if settles:
            link.settled()
        await link.go()
        if self.count > 1:
            await until_legible(storage, [DATA], link)
        loop: Any = process.loop
        if self.count > 1:
            ports = {"PLAINTEXT": {one: FIRST_PORT + one for one in self.nodes}}
            context = WorkerContext(node, self.nodes, SOCKETS, ports, settles, {"PLAINTEXT": 0}, {"PLAINTEXT": 0})
            broker = Broker(settings, self.clock, storage, [DATA], loop, of_worker(context, link, loop))
        else:
            broker = Broker(settings, self.clock, storage, [DATA], loop, sole(settings, OwnThread(loop, "journal")))
        await broker.start()
        process.broker = broker
        process.dispatcher = Dispatcher(broker)
        process.limits = broker.limits

    def stop(self) -> None:
        """A clean stop of all; the disk may refuse to be left clean."""
        self.supervisor.is_stopping = True
        for worker in self.supervisor.workers.values():
            if worker.process is not None and not worker.is_ready:
                worker.process.end()
        stopped: list[SimulatedWorker] = []
        for process in self.processes:
            process.run(self._begin_to_stop, process, stopped)
        running = [one.process for one in self.supervisor.workers.values() if one.process is not None]
        is_over = self.loop.run_until(lambda: all(one.has_ended for one in running), MOST_STOP_MS)
        self.end()
        if self.has_lost_power:
            raise PowerCut
        self.check_processes()
        if not is_over:
            raise SimulationFailure("the workers do not stop")
        if len(stopped) == self.count > 1:
            try:
                settling.merge(self.storage, [DATA])
            except StorageFault as fault:
                self.note("not merged", fault)  # which is left to the next start
        self.note("stopped", len(stopped), "of", self.count)

    def stop_one(self, process: SimulatedWorker) -> None:
        """A clean stop of one worker, which has a successor."""
        process.run(self._begin_to_stop, process, [])

    def _begin_to_stop(self, process: SimulatedWorker, stopped: list[SimulatedWorker]) -> None:
        process.loop.is_stopping = True
        process.loop.create_task(self._stop_broker(process, stopped))

    async def _stop_broker(self, process: SimulatedWorker, stopped: list[SimulatedWorker]) -> None:
        assert process.broker is not None
        process.link.stopping()
        await process.broker.stop()
        if not process.storage.has_ended:
            stopped.append(process)
            self.deliver_to(process)
        process.storage.end()

    def end(self) -> None:
        """All of them, at once."""
        self.supervisor.end()
        self.lose_clients()
        self.loop.overlaps = 0
        self.loop.processes.clear()

    def check_processes(self) -> None:
        """Nothing was raised in them that nobody has caught."""
        for process in self.loop.processes:
            if process.failures:
                raise SimulationFailure(f"an exception inside {process}: {process.failures[0]}")
        if self.errors.found:
            raise SimulationFailure(f"an exception inside a broker: {self.errors.found[0]}")

    # -- what goes wrong

    def note(self, kind: str, *details: object) -> None:
        super().note(kind, *details)
        if kind in TROUBLES:
            self.trouble()

    def trouble(self) -> None:
        """Something goes wrong now, or has ended to go wrong."""
        self.trouble_s = self.clock.monotonic()

    @property
    def has_been_calm_ms(self) -> float:
        return (self.clock.monotonic() - self.trouble_s) * 1000

    @property
    def is_undisturbed(self) -> bool:
        """Whether nothing is wrong, nor was shortly before the last request was begun."""
        return self.is_undisturbed_since(self.asked_s)

    def is_undisturbed_since(self, moment_s: float) -> bool:
        is_fast = self.network.delays_ms is DELAYS_MS and moment_s > self.network.late_until_s
        return self.is_whole and is_fast and not self.is_excused() and moment_s - self.trouble_s > REST_S

    @property
    def is_whole(self) -> bool:
        """Whether every worker is there and goes on."""
        return all(one.is_served for one in self.supervisor.workers.values())

    # -- what runs in it

    def partitions(self) -> list[Partition]:
        brokers = (one.broker for one in self.processes)
        return [each for one in brokers if one is not None for each in one.logs.partitions.values()]

    def find(self, topic: str, index: int) -> Partition | ErrorCode:
        """A partition where it is led, unless that worker hangs."""
        for process in self.processes:
            if process.hangs or process.broker is None:
                continue
            known = process.broker.cluster.topics.get(topic)
            found = ErrorCode.NOT_LEADER_OR_FOLLOWER if known is None else known.find(index)
            if isinstance(found, Partition):
                return found
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def leaders(self, topic: str, index: int) -> set[int]:
        """Which workers lead a partition, hanging ones among them: one, or none while it is handed over or one starts."""
        return {
            process.node
            for process in self.processes
            if process.broker is not None
            and (known := process.broker.cluster.topics.get(topic)) is not None
            and isinstance(known.find(index), Partition)
        }

    def each_broker(self, action: Callable[[Broker], None]) -> None:
        """Raises PowerCut or Unanswered where one of them ends meanwhile."""
        for process in self.processes:
            if not process.hangs and process.broker is not None:
                process.run(action, process.broker)
            if self.has_lost_power:
                raise PowerCut
            if process.has_ended:
                raise Unanswered(f"worker {process.node} has ended meanwhile")

    # -- clients

    def any_node(self) -> int | None:
        """Somebody who seems to be there, and not somebody who still knows what was before it hung."""
        asked = self.awake or self.processes
        return self.chance.choice(asked).node if asked else None

    @property
    def awake(self) -> list[SimulatedWorker]:
        """Workers that know by now of what others have changed while they hung."""
        now_s = self.clock.monotonic()
        return [one for one in self.processes if not one.hangs and now_s - one.woke_s > REST_S]

    def connect(self, principal: Principal = ANONYMOUS, *, door: str | None = None) -> Client:
        assert door is None, "nobody logs in here"
        routed: Any = RoutedClient(self, principal)
        return routed  # type: ignore[no-any-return]

    def connect_to(self, node: int, principal: Principal = ANONYMOUS) -> ProcessClient | None:
        process = next((one for one in self.processes if one.node == node), None)
        if process is None:
            return None
        client = ProcessClient(process, principal)
        self._clients.append(client)
        return client

    def deliver(self) -> None:
        self.check_processes()
        super().deliver()

    def deliver_to(self, process: SimulatedWorker) -> None:
        """Answers that have left before its end arrive."""
        for client in list(self._clients):
            if isinstance(client, ProcessClient) and client.process is process:
                client.deliver()

    def ask_node(self, node: int, request: Message, version: int) -> Any:
        """Ask one worker and wait; None if it ends before it has answered."""
        client = self.connect_to(node)
        if client is None:
            return None
        answers: list[Any] = []
        client.send(request, version, answers.append)

        def is_answered() -> bool:
            client.deliver()
            return bool(answers) or self.has_lost_power

        in_time = self.loop.run_until(is_answered, MOST_ANSWER_MS)
        if client in self._clients:
            self._clients.remove(client)
        if self.has_lost_power:
            raise PowerCut
        self.check_processes()
        if not in_time:
            raise SimulationFailure(f"{type(request).__name__} v{version} is never answered by {node}")
        return answers[0]

    def ask(self, request: Message, version: int) -> Any:
        """Ask whoever it is for, and again until it is served; what changes something is asked once."""
        began_s = self.asked_s = self.clock.monotonic()
        while True:
            node = self._view.node_for(request)
            answer = None if node is None else self.ask_node(node, request, version)
            self._view.heard(request, answer)
            if answer is None and node is not None and not isinstance(request, READS):
                raise Unanswered(f"{type(request).__name__} v{version}")
            waits = answer is None or (wanted_by(request) is not None and is_misdirected(answer))
            if not waits:
                return answer
            waited_ms = (self.clock.monotonic() - began_s) * 1000
            if waited_ms > MOST_WAIT_MS or min(waited_ms, self.has_been_calm_ms) > CALM_MS:
                raise self._not_served(request, version, answer)
            self.loop.advance(ASK_AGAIN_MS)
            if self.has_lost_power:
                raise PowerCut

    def _not_served(self, request: Message, version: int, answer: Any) -> Unanswered | SimulationFailure:
        """What to raise when somebody has asked for long enough; a failure tells what each worker says of whom to ask."""
        if self.is_excused():
            return Unanswered(f"{type(request).__name__} v{version}: {answer}")
        wanted = wanted_by(request)
        waits_for = f" by {wanted}" if wanted is not None else ""
        told = "; ".join(f"worker {node} {self._said_by(node, wanted)}" for node in self.nodes)
        return SimulationFailure(
            f"{type(request).__name__} v{version} is not served{waits_for}, within {CALM_MS} ms of calm or {MOST_WAIT_MS} ms in all:"
            f" the last answer is {answer}; {told}; {self.supervisor.failure}"
        )

    def _said_by(self, node: int, wanted: Leader | Coordinator | None) -> str:
        """Whom a worker names, in words."""
        process = next((one for one in self.processes if one.node == node), None)
        if process is None or process.hangs:
            return "is away" if process is None else "hangs"
        if wanted is None:
            return "is there"
        try:
            return said_in(self.ask_node(node, *question_for(wanted)), wanted)
        except SimulationFailure as failure:
            return f"is of no help: {failure}"


class SimulatedServer:
    """A socket of the simulated machine, whose folder nobody removes."""

    def __init__(self, path: str, connect: Callable[[], asyncio.Protocol], _: int) -> None:
        self._path = path
        self._connect = connect
        self._server: Any = None

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_unix_server(self._connect, self._path)

    def close(self) -> None:
        self._server.close()


@contextlib.contextmanager
def in_workers_simulation(world: WorkersWorld) -> Iterator[None]:
    """Besides: brokers open no ports, their worker threads are their process's, and journals are shortened after a few entries."""
    with (
        in_simulation(world),
        patch("horolog.broker.server.app.ThreadPoolExecutor", lambda *_, **__: asyncio._get_running_loop()),
        patch("horolog.broker.base.own_thread.ThreadPoolExecutor", lambda *_, **__: asyncio._get_running_loop()),
        patch("horolog.broker.server.app.listen_addresses", lambda _: ()),
        patch("horolog.broker.network.peer_listener.UnixServer", SimulatedServer),
        patch("horolog.broker.cluster.file_journal.GROWTH_BYTES", GROWTH_BYTES),
    ):
        yield
