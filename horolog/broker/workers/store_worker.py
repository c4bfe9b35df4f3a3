"""A worker over a store: a broker of the cluster by itself. It shares ports, limits and the parent of its folders with the other workers.

    DATA/brokers/11, DATA/brokers/12 ...    the folders of brokers 11, 12 ...: copies of what the store has

Workers that are fewer, or more, at the next start lose nothing: a folder that is not used any more has copies only.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.broker.config.divided_settings import divided
from horolog.broker.server import store_run
from horolog.broker.server.app import EXIT_OK
from horolog.broker.server.over_store import use_of
from horolog.broker.server.store_run import BrokerPart
from horolog.broker.workers.of_worker import at_its_ports

if TYPE_CHECKING:
    from horolog.broker.cluster.link import WorkerLink
    from horolog.broker.cluster.worker_context import WorkerContext
    from horolog.broker.config.settings import Settings
    from horolog.broker.observability.logs import LogSetup
    from horolog.broker.server.app import Teller

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreWorker:
    """One worker, by the supervisor's orders."""

    context: WorkerContext
    settings: Settings
    data_dirs: Sequence[str]
    """The folders above those of the workers."""

    async def serve(self, link: WorkerLink, logs: LogSetup, teller: Teller) -> int:
        """Serve until a signal, or until the supervisor has gone; the exit code. Raises what a start raises."""
        store_run.refuse_settings(self.settings)
        link.on_lost = partial(os.kill, os.getpid(), signal.SIGTERM)
        if self.context.is_first:
            self._begin_log()
        use = use_of(divided(self.settings, len(self.context.nodes)))
        try:
            store = store_run.opened(self.settings)
            await store_run.run_in_loop(self.settings, store, use, logs, teller, self._part())
        except store_run.REFUSALS as error:
            link.failed(str(error), store_run.EXIT_REFUSED)
            return store_run.EXIT_REFUSED
        finally:
            link.on_lost = lambda: None
        return EXIT_OK

    def _part(self) -> BrokerPart:
        ports = {listener: of[self.context.node] for listener, of in self.context.ports.items()}
        return BrokerPart(self.data_dirs, ports, partial(at_its_ports, context=self.context))

    def _begin_log(self) -> None:
        """The lines that the log has once for all workers."""
        log.warning("%s", store_run.EXPERIMENTAL)
        for folder in unused_folders(self.data_dirs, self.context.nodes):
            log.info("no worker uses %s: it has only copies of what the store has, so you can delete it", folder)


def unused_folders(data_dirs: Sequence[str], nodes: Sequence[int]) -> Iterator[Path]:
    """Folders of workers that do not run any more."""
    for parent in (Path(folder, "brokers") for folder in data_dirs):
        if parent.is_dir():
            yield from sorted(one for one in parent.iterdir() if one.name not in map(str, nodes))
