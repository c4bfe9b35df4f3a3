"""The supervisor of simulated workers: it starts them, hears them through the product's own `Tether`, and starts successors.

What it does is what the product's supervisor does with real processes, without them: it tells workers of each other, kills one that
does not answer, and ends with the last. One thing is left out: a worker that ends again and again is always started again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from horolog.broker.cluster.link import WorkerLink
from horolog.broker.workers.tether import ASK_EVERY_S, Tether
from tests.simulation.workers.process import Process

if TYPE_CHECKING:
    from tests.simulation.workers.machine import Machine
    from tests.simulation.workers.network import End, Network

SUCCESSOR_AFTER_MS = (5, 50, 150, 300)
"""A process takes its time to be there."""


class Worker:
    """One worker from the first start to the last end; `process` is the one that runs now."""

    def __init__(self, crew: Supervisor, node: int) -> None:
        self.node = node
        self.is_ready = False
        self.has_stopped = False
        """It was asked to stop, and has ended well."""
        self.tether: Tether | None = None
        self.process: Process | None = None
        self.wire: End | None = None
        self._crew = crew

    def __repr__(self) -> str:
        return f"<Worker {self.node}{' ready' if self.is_ready else ''}>"

    @property
    def is_served(self) -> bool:
        """Whether clients are answered there."""
        return self.is_ready and self.process is not None and not self.process.has_ended and not self.process.hangs

    # -- what it says: `Tether` calls these

    def settled(self) -> None:
        self._crew.settled()

    def ready(self) -> None:
        self.is_ready = True
        self._crew.noted("worker serves", self.node)
        self._crew.tell_who_is_live()

    def failed(self, message: str, code: int) -> None:
        self._crew.failure = message
        self._crew.noted("worker failed", self.node, message)

    def stopping(self) -> None:
        self.is_ready = False
        self._crew.tell_who_is_live()

    def journal(self, number: int) -> None:
        for other in self._crew.others_of(self):
            other.tether_or_fail.journal(number)

    def applied(self, number: int) -> None:
        for other in self._crew.others_of(self):
            other.tether_or_fail.applied(self.node, number)

    def gone(self) -> None:
        """The link ends with the process: what that has said before is heard by now."""
        self.tether = None
        self._crew.reap(self)

    @property
    def tether_or_fail(self) -> Tether:
        assert self.tether is not None
        return self.tether


class Supervisor:
    """See the module's docstring. `start_process` makes a worker's process and begins what runs in it."""

    def __init__(
        self,
        machine: Machine,
        network: Network,
        nodes: tuple[int, ...],
        start_process: Callable[[Worker, bool, End], Process],
        noted: Callable[..., None],
    ) -> None:
        self.nodes = nodes
        self.workers = {node: Worker(self, node) for node in nodes}
        self.noted = noted
        self.is_settled = False
        self.has_begun = False
        """All were ready once. Before, an end of one is the end of all."""
        self.is_stopping = False
        self.ends = 0
        self.failure = "no reason was told"
        self._machine = machine
        self._network = network
        self._start_process = start_process
        self._has_ended = False

    def __repr__(self) -> str:
        return f"<Supervisor of {list(self.workers.values())}>"

    @property
    def live(self) -> frozenset[int]:
        return frozenset(one.node for one in self.workers.values() if one.is_ready)

    def others_of(self, worker: Worker) -> list[Worker]:
        return [one for one in self.workers.values() if one is not worker and one.tether is not None]

    def start(self) -> None:
        for worker in self.workers.values():
            self._start(worker)
        self._network.loop.call_later(ASK_EVERY_S, self._look)

    def end(self) -> None:
        """It is killed, and the workers end with it."""
        self._has_ended = True
        for worker in self.workers.values():
            if worker.process is not None:
                worker.process.end()

    def settled(self) -> None:
        self.is_settled = True
        for worker in self.workers.values():
            if worker.tether is not None:
                worker.tether.go()

    def tell_who_is_live(self) -> None:
        for worker in self.workers.values():
            if worker.tether is not None:
                worker.tether.live(self.live)

    def _start(self, worker: Worker) -> None:
        if self._has_ended or self.is_stopping or worker.process is not None or (self.ends and not self.has_begun):
            return
        worker.wire, theirs = self._network.pair(self._network.loop, self._network.loop)
        worker.tether = worker.wire.protocol = Tether(worker)
        worker.tether.connection_made(worker.wire)
        worker.tether.begin({})
        settles = worker.node == self.nodes[0] and not self.is_settled
        process = worker.process = self._start_process(worker, settles, theirs)
        process.on_end = lambda _: self._ended(worker)
        self._machine.add(process)
        if self.is_settled:
            worker.tether.go()

    def _ended(self, worker: Worker) -> None:
        process = worker.process
        assert process is not None
        self._machine.remove(process)
        self.ends += 1
        self.noted("worker ended", worker.node)

    def reap(self, worker: Worker) -> None:
        """Its process has ended: a successor follows."""
        worker.process = None
        worker.is_ready = False
        self.tell_who_is_live()
        delay_ms = self._machine.chance.choice(SUCCESSOR_AFTER_MS)
        self._network.loop.call_later(delay_ms / 1000, self._start, worker)

    def _look(self) -> None:
        """Whoever does not answer is killed."""
        if self._has_ended:
            return
        for worker in self.workers.values():
            if worker.is_ready and worker.tether is not None and worker.tether.is_silent():
                self.noted("worker is silent", worker.node)
                if worker.process is not None:
                    worker.process.end()
        self._network.loop.call_later(ASK_EVERY_S, self._look)


class _Link(WorkerLink):
    """Orders are heard before there is a link; here the process has them already."""

    def _hear(self, word: str, values: list[Any]) -> None:
        if word != "begin":
            super()._hear(word, values)


def link_of(process: Process, node: int, wire: End) -> WorkerLink:
    """The worker's side of its link."""
    loop: Any = process.loop
    link = _Link(node, loop, loop.time)
    wire.loop = process.loop
    wire.protocol = link
    process.run(link.connection_made, wire)
    return link
