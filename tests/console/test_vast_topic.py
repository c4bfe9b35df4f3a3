"""A topic of 100 million records, as a browser sees it: each bar has the records of the data, and pages cost no more for a longer log."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from horolog import Admin
from tests.console.conftest import HOUR, Console, in_a_thread
from tests.console.test_limits import BUSY_FACTOR, RESIDENT_MIB
from tests.support.broker_process import BrokerProcess
from tests.support.processor_time import commands_at_most
from tests.support.style import PROJECT
from tests.support.vast_topic import BUSY_EVERY, PARTITIONS, RECORDS, SEGMENT_BYTES, YEAR, VastTopic

pytestmark = pytest.mark.slow

MAKING_S = 20
DATA_BYTES = 400 << 20
PAGE_CPU_S = 1.0
"""Of the broker and the console together; most where every bar ends in another batch and none of them was opened before."""
NARROW_BYTES = 8 << 20
"""What the broker reads for a page that shows a day or less, of 300 MB."""
WIDE_BYTES = 24 << 20
"""For others: a batch for each bar and partition."""
MOMENT_BYTES = 12 << 20
"""The batches that hold the records around a time, and those in which the bars of its picture end."""
ZOOMS_MS = [YEAR, 90 * 24 * HOUR, 7 * 24 * HOUR, 24 * HOUR, HOUR, 60_000, 5_000, 500, 50]
AT_S = 2.0
VAST_RESIDENT_MIB = RESIDENT_MIB + 4
"""Batches of ten thousand records, opened for four partitions at once, take up to 4 MiB more than other pages leave."""


class Vast:
    """The topic, its broker and a console."""

    def __init__(self, folder):
        self.broker = BrokerProcess(folder / "data").start()
        asyncio.run(self._create())
        self.broker.stop()
        self.topic = VastTopic(time.time_ns() // 1_000_000 - HOUR)
        began = time.process_time()
        self.topic.write(self.broker.data, "year")
        self.making_s = time.process_time() - began
        self.broker.start()
        self.console = Console("-b", self.broker.address)

    async def _create(self):
        async with Admin(self.broker.address) as admin:
            configs = {"retention.ms": "-1", "segment.bytes": str(SEGMENT_BYTES)}
            await admin.create_topic("year", PARTITIONS, configs=configs)

    def end(self):
        self.console.end()
        self.broker.stop()

    def cpu_s(self):
        used = [psutil.Process(pid).cpu_times() for pid in (self.broker.pid, self.console.process.pid)]
        return sum(one.user + one.system for one in used)

    def bytes_read(self):
        """By the broker, of files and whatever else, whether they lie in memory or not."""
        return int(re.search(r"rchar: (\d+)", Path(f"/proc/{self.broker.pid}/io").read_text())[1])

    def busy_moment(self):
        """The middle of ten seconds in which 40,000 records lie, in the second half of the year."""
        number = len(self.topic.kinds) * 3 // 4 // BUSY_EVERY * BUSY_EVERY - 1
        assert self.topic.kinds[number] is self.topic.busy
        return self.topic.base(1, number) + 5_000


@pytest.fixture(scope="module")
def vast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vast")
    made = in_a_thread(_made(folder))
    yield made
    made.end()
    shutil.rmtree(folder)


async def _made(folder):
    return await asyncio.to_thread(Vast, folder)


def chart(page):
    return json.loads(page.locator("[data-chart]").get_attribute("data-chart"))


def known(topic, shown):
    borders = [shown["start"] + number * shown["bucket"] for number in range(len(shown["counts"]) + 1)]
    return [topic.count(one, other) for one, other in pairwise(borders)]


def test_it_is_made_in_seconds_and_small(vast):
    assert vast.topic.records == RECORDS
    assert vast.making_s < MAKING_S
    assert sum(path.stat().st_size for path in vast.broker.data.rglob("*.log")) < DATA_BYTES


def test_the_timeline_is_right_from_a_year_to_milliseconds_and_costs_no_more_for_the_length_of_the_log(vast, page):
    log_bytes = sum(path.stat().st_size for path in vast.broker.data.rglob("*.log"))
    page.goto(vast.console.address)
    assert page.locator("tr[data-row]", has_text="year").count() == 1
    moment = vast.busy_moment()
    costs = []
    for zoom in [None, *ZOOMS_MS, None]:
        words = "" if zoom is None else f"&from={moment - zoom // 2}&until={moment + zoom // 2}"
        cpu, read, began = vast.cpu_s(), vast.bytes_read(), time.monotonic()
        page.goto(f"{vast.console.address}/topic?name=year{words}")
        page.locator(".u-over").wait_for()
        costs.append((zoom, vast.cpu_s() - cpu, vast.bytes_read() - read, time.monotonic() - began))
        shown = chart(page)
        assert shown["counts"] == known(vast.topic, shown)
        if zoom is None:
            assert sum(shown["counts"]) == RECORDS
            assert re.search(r"gap: [34]w from", page.locator(".legend").inner_text()), "the whole weeks of thirty days"
        elif zoom < HOUR:
            assert shown["bucket"] <= max(1, zoom // 50)
            assert sum(shown["counts"]) > 0
    for number, (zoom, cpu, read, _) in enumerate(costs):
        assert cpu < PAGE_CPU_S * BUSY_FACTOR, costs
        # A megabyte of the log is held against its sum when the first batch of it is looked into since the start.
        checked = log_bytes if number == 0 else WIDE_BYTES * 3 if number < len(costs) - 1 else 0
        assert read < checked + (NARROW_BYTES if zoom and zoom <= 24 * HOUR else WIDE_BYTES), costs
    assert vast.console.resident_mib() < VAST_RESIDENT_MIB


def test_a_key_zooms_into_the_timeline(vast, page):
    moment = vast.busy_moment()
    page.goto(f"{vast.console.address}/topic?name=year&from={moment - YEAR // 4}&until={moment + YEAR // 4}")
    page.locator(".u-over").wait_for()
    said = page.locator("#timeline + .note")
    for _ in range(6):
        before = said.inner_text()
        page.keyboard.press("+")
        expect(said).not_to_have_text(before)
        page.locator(".u-over").wait_for()
        shown = chart(page)
        assert shown["counts"] == known(vast.topic, shown)


@pytest.mark.parametrize("place", ["busy", "quiet", "first", "last"])
def test_the_moment_shows_the_records_around_a_time(vast, page, place):
    topic = vast.topic
    moment = {
        "busy": vast.busy_moment(),
        "quiet": topic.bases[100] + 7 * 60_000,
        "first": topic.since_ms,
        "last": topic.since_ms + YEAR,
    }[place]
    address = f"{vast.console.address}/moment?topic=year&at={moment}&within=5m&rows=60"
    page.goto(address)  # the first look since the broker's start holds the log against its sums
    cpu, read = vast.cpu_s(), vast.bytes_read()
    page.goto(address)
    shown = [
        milliseconds(one)
        for one in page.locator("tr[data-row] time").evaluate_all("all => all.map(one => one.dateTime)")
    ]
    cost = vast.cpu_s() - cpu, vast.bytes_read() - read
    around = sorted(
        each for one in range(PARTITIONS) for each in topic.times_of(one, moment - 5 * 60_000, moment + 5 * 60_000)
    )
    earlier = [one for one in around if one < moment][-30:]
    later = [one for one in around if one >= moment][: 60 - len(earlier)]
    assert shown == earlier + later
    assert cost[0] < PAGE_CPU_S * BUSY_FACTOR
    assert cost[1] < MOMENT_BYTES
    assert vast.console.resident_mib() < VAST_RESIDENT_MIB


def milliseconds(text):
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_five_minutes_in_the_middle_on_the_command_line(vast):
    topic = vast.topic
    moment = vast.busy_moment()
    words = ["at", "year", f"@{moment}ms", "--for", "5m", "-o", "json", "-b", vast.broker.address]
    read, cpu = vast.bytes_read(), vast.cpu_s()
    with commands_at_most(AT_S * BUSY_FACTOR):
        done = subprocess.run(
            [sys.executable, "-m", "horolog", *words], cwd=PROJECT, capture_output=True, text=True, check=False
        )
    took = vast.cpu_s() - cpu
    found = [json.loads(line)["timestamp"] for line in done.stdout.splitlines()]
    wanted = sorted(each for one in range(PARTITIONS) for each in topic.times_of(one, moment, moment + 5 * 60_000))
    assert [
        round(datetime.fromisoformat(one).timestamp() * 1000) if isinstance(one, str) else one for one in found
    ] == wanted
    assert took < AT_S * BUSY_FACTOR
    assert vast.bytes_read() - read < MOMENT_BYTES
