"""The console shows a horolog and a real Kafka alike, to users of the broker who log in by their own passwords."""

import asyncio
import re
import subprocess
import sys

import httpx
import pytest

from horolog import Admin, Client, Producer, TopicPartition
from tests.support import sasl_brokers
from tests.support.sasl_brokers import PASSWORD
from tests.support.style import PROJECT

PAGES = ("/", "/topic?name=t", "/moment?topic=t&at=1m&within=10m", "/groups", "/group?name=g")
LATER = re.compile(r'<span class="as-of-then">.*?</span>')
"""Words that are hidden until the broker does not answer any more."""


@pytest.fixture(params=["horolog", pytest.param("kafka", marks=pytest.mark.kafka_jars)])
def door(request, tmp_path):
    if request.param == "kafka":
        with sasl_brokers.real_kafka("4.3.1", tmp_path / "kafka") as found:
            yield found
    else:
        with sasl_brokers.horolog(tmp_path / "horolog") as (found, _):
            yield found


async def fill(bootstrap):
    async with Client(bootstrap) as client, Admin(client) as admin, Producer(client) as producer:
        await admin.create_topic("t", 2)
        for number in range(20):
            await producer.send_and_wait("t", b"%d" % number, key=b"k%d" % (number % 3))
        await admin.alter_group_offsets("g", {TopicPartition("t", 0): 1})


@pytest.fixture
def address(door):
    words = ["-b", door.closed, "--listen", "127.0.0.1:0", "--login", "sasl", "--sasl-mechanism", "PLAIN"]
    command = [sys.executable, "-m", "horolog", "console", *words]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip().rstrip("/")
        process.terminate()


def test_a_user_of_the_broker_sees_everything(door, address):
    asyncio.run(fill(door.open))
    with httpx.Client(base_url=address, headers={"origin": address}) as browser:
        wrong = browser.post("/login", data={"user": "alice", "secret": "wrong"})
        assert (wrong.status_code, "wrong user or password" in wrong.text) == (403, True)
        right = browser.post("/login", data={"user": "alice", "secret": PASSWORD, "to": "/groups"})
        assert (right.status_code, right.headers["location"]) == (303, "/groups")
        for path in PAGES:
            page = browser.get(path, timeout=30)
            assert page.status_code == 200, page.text
            assert "Log out alice" in page.text
            assert "not known" not in LATER.sub("", page.text)
