"""Compose files written for Kafka's images do here what they were written for: health checks, scripts, lists of topics."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from horolog import Admin
from horolog.client.cli.kafka_scripts import SCRIPTS
from tests.container import compose_files, images
from tests.support.schemas import faults

SECONDS = 60.0


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(params=compose_files.FILES, ids=lambda path: path.stem)
def compose(request, tmp_path):
    return compose_files.load(request.param, free_port, tmp_path)


@pytest.mark.parametrize("path", compose_files.FILES, ids=lambda path: path.stem)
def test_the_schema_of_compose_accepts_it(path):
    assert faults(path, "compose-spec") == ""


class Here:
    """Processes of this machine, with what the image would have on its path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        for name in SCRIPTS:
            self._script(name, f"-m horolog.client.cli.kafka_scripts {name}")
            self._script(f"{name}.sh", f"-m horolog.client.cli.kafka_scripts {name}")
        self._script("nc", str(images.PROJECT / "config/container/nc.py"))
        self._broker = None

    def _script(self, name: str, words: str) -> None:
        path = self._bin / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        path.chmod(0o755)

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
        return {**own, "PATH": f"{self._bin}:{own['PATH']}", "PYTHONPATH": str(images.PROJECT), **more}

    def start(self, service: compose_files.Service) -> None:
        configs = [source / "server.properties" for source in service.mounts]
        command = [sys.executable, "-m", "horolog.client.cli.main", "serve", "--data", str(self._folder / "data")]
        command += [word for path in configs for word in ("--config", str(path))]
        with (self._folder / "log").open("ab") as log:
            self._broker = subprocess.Popen(
                command, env=self._environment(service.environment), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def call(self, words: list[str]) -> tuple[int, str]:
        words = [re.sub(r"/opt/(bitnami/)?kafka/bin/", f"{self._bin}/", word) for word in words]
        done = subprocess.run(
            words,
            env=self._environment({}),
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout

    def said(self) -> str:
        return (self._folder / "log").read_text()

    def stop(self) -> int:
        self._broker.terminate()
        return int(self._broker.wait(images.STOP_SECONDS))


def run_to_the_end(place, compose):
    """Start the broker, wait for its health check, run the other containers one after the other."""
    health = compose.broker.health
    place.start(compose.broker)
    address = compose.broker.environment.get("KAFKA_ADVERTISED_LISTENERS", "") or compose.broker.environment.get(
        "KAFKA_CFG_ADVERTISED_LISTENERS", f"x://127.0.0.1:{compose.ports.get('9092')}"
    )
    address = address.split(",")[-1].partition("://")[2]
    deadline = time.monotonic() + SECONDS
    while not (answers(address) and (not health or place.call(health)[0] == 0)):
        assert time.monotonic() < deadline, place.said()
        time.sleep(0.2)
    for other in compose.others:
        code, output = place.call(other.command)
        assert code == 0, f"{other.name}: {output}\n{place.said()}"
    assert asyncio.run(topics(address)) == compose.topics


def answers(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


async def topics(address):
    async with Admin(address) as admin:
        found = await admin.describe_topics()
        return {name: len(topic.partitions) for name, topic in found.items() if not topic.internal}


@pytest.mark.one_in(3)
def test_it_works_with_processes_of_this_machine(compose, tmp_path):
    place = Here(tmp_path)
    try:
        run_to_the_end(place, compose)
    finally:
        code = place.stop()
    assert code == 0, place.said()


def test_a_health_check_fails_without_a_broker(tmp_path):
    """After the time that Kafka's own scripts would wait, which a file of settings makes shorter."""
    settings = tmp_path / "client.properties"
    settings.write_text("default.api.timeout.ms=300\n")
    place = Here(tmp_path)
    words = ["--bootstrap-server", f"127.0.0.1:{free_port()}", "--command-config", str(settings)]
    code, output = place.call(["kafka-broker-api-versions.sh", *words])
    assert (code, "no answer" in output) == (1, True), output
    assert place.call(["nc", "-z", "127.0.0.1", str(free_port())])[0] == 1


class InTheImage:
    """Containers of the image: one for the broker, one for everything else."""

    def __init__(self, image: str, compose: compose_files.ComposeFile, folder: Path) -> None:
        environment = {**compose.broker.environment, "KAFKA_HOROLOG_HTTP_LISTEN": f"127.0.0.1:{free_port()}"}
        self._broker = images.Container(image, environment, compose.broker.mounts)
        self._other = images.Container(image, {}, {})
        self._folder = folder

    def start(self, _service: compose_files.Service) -> None:
        self._broker.start(self._folder / "log")

    def call(self, words: list[str]) -> tuple[int, str]:
        done = self._other.call("/opt/horolog/app/container/entrypoint.sh", *words)
        return done.returncode, done.stdout + done.stderr

    def said(self) -> str:
        return self._broker.said()

    def stop(self) -> int:
        try:
            return self._broker.stop()[0]
        finally:
            self._broker.remove()
            self._other.remove()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_works_in_the_image(image, compose, tmp_path):
    place = InTheImage(image, compose, tmp_path)
    try:
        run_to_the_end(place, compose)
    finally:
        code = place.stop()
    assert code == 0, place.said()
