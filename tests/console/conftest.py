"""Chromium, a broker with records of every kind, and a console of its own process, for all tests of pages."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from horolog import Admin, Client, Producer, TopicPartition
from tests.support.broker_process import TARGET_SETTINGS, BrokerProcess
from tests.support.style import PROJECT

CHROMIUM = os.environ.get("HOROLOG_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
WORDS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
HOSTILE = '"><img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>'
HOUR = 3_600_000
MANY, RARE = 120_000, 30_000
"""Records of an hour, and one of so many is looked for."""


def pytest_itemcollected(item):
    item.add_marker(pytest.mark.browser)
    if CHROMIUM is None:
        item.add_marker(pytest.mark.skip(reason="Chromium is not installed"))


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        expect.set_options(timeout=60_000)  # a busy machine takes its time
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=WORDS)
        yield running
        running.close()


@pytest.fixture
def page(chromium):
    """A page whose faults fail the test: what scripts throw, and whatever the content policy had to stop."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    faults = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
    yield opened
    context.close()
    assert faults == []


def in_a_thread(coroutine):
    """Its result: Playwright has an event loop in the thread of the tests."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class Console:
    """A console's process and its address."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "horolog", "console", "--listen", "127.0.0.1:0", "--tz", "UTC", *words]
        self.process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().rstrip("/")
        assert self.address.startswith("http"), self.process.stderr.read()

    def cpu_s(self):
        """The processor time that it has taken since it was started."""
        used = psutil.Process(self.process.pid).cpu_times()
        return used.user + used.system

    def resident_mib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def start_console():
    started = []

    def start(*words):
        started.append(Console(*words))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """(broker, now): orders of three days, payments beside them, hostile values, records ahead of now and late ones, a group behind.

    It tells its segments over HTTP.
    """
    now = time.time_ns() // 1_000_000
    settings = {**TARGET_SETTINGS, "horolog.http.listen": "127.0.0.1:0"}
    running = BrokerProcess(tmp_path_factory.mktemp("console-broker") / "data", settings).start()
    in_a_thread(fill(running.address, now))
    yield running, now
    running.stop()


@pytest.fixture(scope="session")
def console(filled):
    running = Console("-b", filled[0].address, "--allow-changes")
    yield running
    running.end()


async def fill(bootstrap, now):
    async with Client(bootstrap) as client, Admin(client) as admin:
        for name, partitions, configs in (
            ("orders", 3, {"retention.ms": str(60 * HOUR)}),
            ("payments", 1, {}),
            ("hostile", 1, {}),
            ("ahead", 1, {"message.timestamp.after.max.ms": str(2**62)}),
            ("late", 1, {}),
            ("many", 3, {}),
        ):
            await admin.create_topic(name, partitions, configs=configs)
        async with Producer(client) as producer:
            for number in range(600):
                value = json.dumps({"id": number, "state": "paid" if number % 2 else "new"}).encode()
                at = now - (600 - number) * 6 * 60_000
                await producer.send("orders", value, key=f"c-{number % 20}".encode(), timestamp_ms=at)
                if number % 10:
                    await producer.send("payments", value, key=b"k", timestamp_ms=at)
            for number in range(MANY):
                value = b'{"id":%d,"rare":%s}' % (number, b"true" if number % RARE == 0 else b"false")
                await producer.send("many", value, timestamp_ms=now - 2 * HOUR + number * HOUR // MANY)
            await producer.send(
                "hostile",
                HOSTILE.encode(),
                key=HOSTILE.encode(),
                headers=[(b"h", HOSTILE.encode())],
                timestamp_ms=now - HOUR,
            )
            await producer.send("hostile", b"\xff\xfe", key=None, timestamp_ms=now - HOUR)
            await producer.send("ahead", b"x", timestamp_ms=now + 9 * HOUR)
            for back in range(5):
                await producer.send("late", b"x", timestamp_ms=now - back * HOUR)
            await producer.flush()
        places = [TopicPartition("orders", index) for index in range(3)]
        await admin.alter_group_offsets("billing", dict.fromkeys(places, 100))
        await admin.alter_group_offsets(HOSTILE, dict.fromkeys(places, 0))
