"""Brokers for unittest, as unittest runs them."""

import asyncio
import unittest

from confluent_kafka import Producer

from horolog.testing import AsyncBrokerTestCase, BrokerTestCase


class Plain(BrokerTestCase):
    broker_options = {"clock": "2026-11-17 10:05", "log_message_timestamp_type": "LogAppendTime"}  # noqa: RUF012

    def test_it_is_there(self):
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        producer.produce("t", b"x")
        producer.flush(10)
        (record,) = self.broker.expect("t", count=1)
        self.assertEqual(record.timestamp_ms, self.broker.clock.start_ms)  # noqa: PT009


class OnTheLoop(AsyncBrokerTestCase):
    async def test_it_is_there(self):
        self.broker.create_topic("t")
        self.assertIs(self.broker.broker._loop, asyncio.get_running_loop())  # noqa: PT009


def test_unittest_runs_them():
    for case in (Plain, OnTheLoop):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        assert (result.testsRun, result.errors, result.failures) == (1, [], [])
