"""One broker over a store as a process: `python -m tests.support.store_broker STORE NODE PORT FOLDER KEY=VALUE...`.

It prints a line when it serves. With HOROLOG_TEST_PROBE it writes the ticks of its event loop to that file (`loop_probe`).
"""

import asyncio
import os
import sys
from pathlib import Path

from horolog.broker.bucket.shipped_safety import ShippingLimits
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.server.over_store import use_of
from horolog.broker.server.store_run import OpenedStore, run
from horolog.stores.addresses import ways_to
from horolog.stores.opening import open_store
from tests.support.loop_probe import LoopProbe

SHIPPING = ShippingLimits(int(os.environ.get("HOROLOG_TEST_FLUSH_MS", "10")), 4 * 1024 * 1024, 64 * 1024 * 1024)

PROBE = os.environ.get("HOROLOG_TEST_PROBE", "")


class Printing:
    def ready(self, _):
        if PROBE:
            LoopProbe(asyncio.get_running_loop(), Path(PROBE)).begin()
        print("ready", flush=True)

    def stopping(self):
        pass


def main(url, node, port, folder, *more):
    static = {
        "node.id": node,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": folder,
        "offsets.topic.num.partitions": "6",
        "transaction.state.log.num.partitions": "6",
        "share.coordinator.state.topic.num.partitions": "6",
        "group.initial.rebalance.delay.ms": "0",
        "horolog.log.level": "WARNING",
    }
    settings = from_layers(Layers(static=static | dict(one.split("=", 1) for one in more)))
    store = open_store(url)
    return run(
        settings, (), OpenedStore(store, ways_to(store.place)), use_of(settings)._replace(shipping=SHIPPING), Printing()
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
