"""The supervisor's message to one worker at its start: which broker it is, the other brokers, and where to find each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """One worker among several. Workers are counted from 1; the first has the number of the node that one process would be."""

    node: int
    nodes: tuple[int, ...]
    """All workers, live or not."""
    sockets: str
    """A folder that only this user enters, with a Unix socket for each node, named by its number."""
    ports: Mapping[str, Mapping[int, int]]
    """For each listener, the advertised port of each node."""
    is_first: bool
    """Whether it settles the folder before any log is opened; false for a successor, for the others run by then."""
    own_ports: Mapping[str, int] = field(default_factory=dict)
    """For each listener, the port that this worker alone listens on."""
    shared_ports: Mapping[str, int] = field(default_factory=dict)
    """For each listener, the port that all workers listen on."""

    @property
    def number(self) -> int:
        """Which worker it is, for people: the first is 1."""
        return self.nodes.index(self.node) + 1

    @property
    def labels(self) -> dict[str, object]:
        """The labels of its log lines."""
        return {"worker": self.number}

    @property
    def http_socket(self) -> str:
        return http_socket(self.sockets, self.node)

    def to_json(self) -> dict[str, Any]:
        """An object that `from_json` reads; JSON has no numbers as keys."""
        ports = {name: {str(node): port for node, port in of.items()} for name, of in self.ports.items()}
        return {
            "node": self.node,
            "nodes": list(self.nodes),
            "sockets": self.sockets,
            "ports": ports,
            "is_first": self.is_first,
            "own_ports": dict(self.own_ports),
            "shared_ports": dict(self.shared_ports),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WorkerContext:
        ports = {name: {int(node): port for node, port in of.items()} for name, of in value["ports"].items()}
        return cls(**{**value, "nodes": tuple(value["nodes"]), "ports": ports})


def http_socket(sockets: str, node: int) -> str:
    """The socket where a node answers the supervisor's HTTP requests."""
    return f"{sockets}/{node}.http"
