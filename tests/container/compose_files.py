"""Compose files as people have them for Kafka's images, made to run here: which service is the broker, what the others do.

Ports are exchanged for free ones and names of services for loopback, since nothing here has a network of its own.
`x-expected` in a file says which service is the broker and which topics there are when all others have ended.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "compose"
FILES = sorted(FOLDER.glob("*.yml"))
_ANY_HOST = r"(?P<host>localhost|127\.0\.0\.1|0\.0\.0\.0|(?<=//)|SERVICES)"


@dataclass(frozen=True)
class Service:
    """One container: its variables, and what it runs; an empty command is the image's own."""

    name: str
    environment: dict[str, str]
    command: list[str]
    health: list[str]
    mounts: dict[Path, str]


@dataclass(frozen=True)
class ComposeFile:
    broker: Service
    others: list[Service]
    topics: dict[str, int]
    ports: dict[str, int]
    """The port here for each that the file names."""


def load(path: Path, free_port: Callable[[], int], scratch: Path) -> ComposeFile:
    text = path.read_text()
    names = yaml.safe_load(text)["services"]
    ports: dict[str, int] = {}

    def moved(text: str) -> str:
        def exchange(found: re.Match[str]) -> str:
            if found["port"] not in ports:
                ports[found["port"]] = free_port()
            return f"127.0.0.1{found['between']}{ports[found['port']]}"

        hosts = _ANY_HOST.replace("SERVICES", "|".join(map(re.escape, names)))
        return re.sub(hosts + r"(?P<between>:| )(?P<port>[0-9]{4,5})\b", exchange, text)

    content = yaml.safe_load(text)
    expected = content["x-expected"]
    images = {name: service["image"] for name, service in content["services"].items()}
    image = images[expected["broker"]]
    services = {
        name: _service(name, service, moved, scratch)
        for name, service in content["services"].items()
        if images[name] == image
    }
    broker = services.pop(expected["broker"])
    return ComposeFile(broker, list(services.values()), dict(expected.get("topics", {})), ports)


def _service(name: str, given: Mapping[str, Any], moved: Callable[[str], str], scratch: Path) -> Service:
    variables = given.get("environment", {})
    pairs = variables.items() if isinstance(variables, dict) else (each.split("=", 1) for each in variables)
    environment = {key: moved(str(value)) for key, value in pairs}
    command = [*_words(given.get("entrypoint", [])), *_words(given.get("command", []))]
    health = given.get("healthcheck", {}).get("test", [])
    return Service(
        name,
        environment,
        [moved(word) for word in command],
        [moved(word) for word in _health(health)],
        _mounts(given.get("volumes", []), moved, scratch),
    )


def _words(given: str | list[str]) -> list[str]:
    return shlex.split(given) if isinstance(given, str) else given


def _health(test: str | list[str]) -> list[str]:
    """As an engine reads it: a text is for a shell."""
    if isinstance(test, str):
        return ["/bin/sh", "-c", test]
    kind, *words = test or ["NONE"]
    return {"CMD": words, "CMD-SHELL": ["/bin/sh", "-c", *words], "NONE": []}[kind]


def _mounts(volumes: list[str], moved: Callable[[str], str], scratch: Path) -> dict[Path, str]:
    """The folders beside the file, copied with their ports exchanged; named volumes are made by the test."""
    mounts: dict[Path, str] = {}
    for volume in volumes:
        source, inside = volume.split(":")[:2]
        if source.startswith("./"):
            copy = scratch / source
            copy.mkdir()
            for file in (FOLDER / source).iterdir():
                (copy / file.name).write_text(moved(file.read_text()))
            mounts[copy] = inside
    return mounts
