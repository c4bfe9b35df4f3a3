"""The commands and variables of docker-compose.cluster.yml as processes of this machine, with its ports and names replaced."""

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.process import free_ports
from tests.container.images import PROJECT
from tests.support import s3_server

WITHIN_S = 60.0
pytestmark = [pytest.mark.go, pytest.mark.timeout(400)]


def replaced(text, by):
    for name, value in by.items():
        text = str(text).replace(name, value)
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def wait_for(is_so):
    latest = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < latest
        time.sleep(0.1)


def is_healthy(url):
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


@pytest.mark.skipif(shutil.which("go") is None, reason="the S3 server is built with Go")
def test_its_store_and_its_brokers_are_a_cluster(tmp_path):
    services = yaml.safe_load((PROJECT / "docker-compose.cluster.yml").read_text())["services"]
    store_port, *ports = free_ports(7)
    for folder in ("objects/horolog", "metadata"):
        (tmp_path / folder).mkdir(parents=True)
    store = services.pop("store")
    by = {":7070": f"127.0.0.1:{store_port}", "/metadata": f"{tmp_path}/metadata", "/objects": f"{tmp_path}/objects"}
    running = []

    def start(command, environment, log):
        with (tmp_path / log).open("wb") as out:
            keys = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(PROJECT)}
            running.append(subprocess.Popen(command, env=keys | environment, cwd=tmp_path, stdout=out, stderr=out))

    def said():
        return "".join(one.read_text() for one in tmp_path.glob("log-*"))

    try:
        command = [str(s3_server.program()), *(replaced(one, by) for one in store["command"])]
        start(command, {name: replaced(value, {}) for name, value in store["environment"].items()}, "log-store")
        wait_for(lambda: is_healthy(f"http://127.0.0.1:{store_port}/health"))
        by = {"store:7070": f"127.0.0.1:{store_port}"}
        for number, (name, service) in enumerate(services.items()):
            inside, outside = f"127.0.0.1:{ports[2 * number]}", f"127.0.0.1:{ports[2 * number + 1]}"
            own = {"0.0.0.0:19092": inside, f"{name}:19092": inside, "0.0.0.0:9092": outside}
            own |= {f"localhost:910{number + 1}": outside}
            environment = {key: replaced(value, own | by) for key, value in service["environment"].items()}
            environment |= {"KAFKA_LOG_DIRS": f"{tmp_path}/{name}"}
            start([sys.executable, "-m", "horolog", "serve"], environment, f"log-{name}")
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports[1]}", "log_level": 0})
        outsides = {(number + 1, ports[2 * number + 1]) for number in range(3)}
        wait_for(lambda: {(one.id, one.port) for one in known(admin)} == outsides)
        admin.create_topics([NewTopic("t", 6, 1)])["t"].result(WITHIN_S)
        acknowledged = []
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{ports[1]}", "log_level": 0})
        for partition in range(6):
            producer.produce(
                "t",
                b"v",
                partition=partition,
                on_delivery=lambda error, one: acknowledged.append((error, one.offset())),
            )
        assert producer.flush(WITHIN_S) == 0
        assert acknowledged == [(None, 0)] * 6
    finally:
        for one in reversed(running):
            one.terminate()
            one.wait(WITHIN_S)
    assert [one.returncode for one in running[1:]] == [0, 0, 0], said()


def known(admin):
    try:
        return admin.list_topics(timeout=2).brokers.values()
    except Exception:  # noqa: BLE001 - no broker answers yet
        return []
