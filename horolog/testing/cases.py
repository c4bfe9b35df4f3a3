"""Brokers for `unittest`: each test of a class has its own as `self.broker`.

class Orders(BrokerTestCase):
    broker_options = {"clock": "2026-11-17 10:05", "num_partitions": 3}

    def test_they_expire(self):
        self.broker.create_topic("orders")
        ...
"""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

from horolog.testing.embedded import EmbeddedBroker, horolog_broker
from horolog.testing.threaded import ThreadedBroker, broker_in_thread


class BrokerTestCase(unittest.TestCase):
    """The broker runs in a thread; `broker_options` are arguments of `broker_in_thread`."""

    broker_options: ClassVar[Mapping[str, Any]] = {}
    broker: ThreadedBroker

    def setUp(self) -> None:
        super().setUp()
        self.broker = self.enterContext(broker_in_thread(**self.broker_options))


class AsyncBrokerTestCase(unittest.IsolatedAsyncioTestCase):
    """The broker runs on the test's event loop; `broker_options` are arguments of `horolog_broker`."""

    broker_options: ClassVar[Mapping[str, Any]] = {}
    broker: EmbeddedBroker

    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.broker = await self.enterAsyncContext(horolog_broker(**self.broker_options))
