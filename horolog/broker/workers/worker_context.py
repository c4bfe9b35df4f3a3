"""What one worker is told when it begins: which of the brokers it is, who the others are, and where each of them is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """One worker among several. Workers are counted from 1; the first has the number of the node that one process would be."""

    node: int
    nodes: tuple[int, ...]
    """All of them, whether they live or not."""
    sockets: str
    """A folder that only this user enters, with a Unix socket for each node, named by its number."""
    ports: Mapping[str, Mapping[int, int]]
    """Of each listener, the port of each node that clients are told."""
    is_first: bool
    """Settles the folder, before anybody opens a log; false in a successor, for the others run by then."""
    own_ports: Mapping[str, int] = field(default_factory=dict)
    """Of each listener, the port that this one alone listens on."""
    shared_ports: Mapping[str, int] = field(default_factory=dict)
    """Of each listener, the port that all listen on."""

    @property
    def number(self) -> int:
        """Which worker it is, for people: the first is 1."""
        return self.nodes.index(self.node) + 1

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
    """Where a node answers the supervisor's questions about its health and figures."""
    return f"{sockets}/{node}.http"
