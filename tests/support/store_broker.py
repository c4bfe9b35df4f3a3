"""One broker over a store as a process: `python -m tests.support.store_broker STORE NODE PORT FOLDER`; it prints a line when it serves."""

import asyncio
import logging
import sys

from horolog.broker.bucket.shipped_safety import ShippingLimits
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.server.app import new_event_loop
from horolog.broker.server.over_store import StoreUse, serve
from horolog.stores.opening import open_store
from horolog.stores.requests import ThreadedRequests

SHIPPING = ShippingLimits(10, 4 * 1024 * 1024, 64 * 1024 * 1024)


def main(url, node, port, folder):
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s node " + node + " %(levelname)s %(message)s")
    static = {
        "node.id": node,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": folder,
        "offsets.topic.num.partitions": "6",
        "transaction.state.log.num.partitions": "6",
        "group.initial.rebalance.delay.ms": "0",
    }
    settings = from_layers(Layers(static=static))

    async def run():
        requests = ThreadedRequests(open_store(url), asyncio.get_running_loop().call_soon_threadsafe, 8)
        await serve(settings, requests, StoreUse(SHIPPING), lambda _: print("ready", flush=True))

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
