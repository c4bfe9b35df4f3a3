"""The tree of a disk in memory: each file and folder has the state that readers see, the one on the disk, and the changes in between."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """A file: the bytes that a reader sees, those on the disk, and the changes between the two in order.

    `data` may be shorter than the file, which then goes on with zeros that take no space.
    """

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    durable: bytearray = field(default_factory=bytearray)
    durable_size: int = 0
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # (position, bytes), or (new size, None)
    mtime_ns: int = 0

    def apply(self, position: int, change: bytes | None) -> None:
        self.size = _apply(self.data, self.size, position, change)
        self.changes.append((position, change))

    def sync(self) -> None:
        """Write the changes since the last sync to the disk, and nothing else."""
        for position, change in self.changes:
            self.durable_size = _apply(self.durable, self.durable_size, position, change)
        self.changes = []

    def evict(self) -> None:
        """Drop the cache: readers see the disk again, and zeros where it has nothing."""
        self.changes = []
        self.data = bytearray(self.durable[: self.size])


@dataclass(slots=True)
class Folder:
    """A folder: names as they are, names as they are on the disk, and the changes between the two in order."""

    names: dict[str, "Node | Folder"] = field(default_factory=dict)
    durable: dict[str, "Node | Folder"] = field(default_factory=dict)
    changes: list[dict[str, "Node | Folder | None"]] = field(default_factory=list)

    def change(self, changes: dict[str, "Node | Folder | None"]) -> None:
        apply_names(self.names, changes)
        self.changes.append(changes)


def _apply(data: bytearray, size: int, position: int, change: bytes | None) -> int:
    """Change `data` in place; returns the new size."""
    if change is None:
        del data[position:]
        return position
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(change)] = change
    return max(size, position + len(change))


def flipped(change: bytes | None, place: int, mask: int) -> bytes | None:
    """A change with one byte corrupted, if it covers that place."""
    if change is None or not 0 <= place < len(change):
        return change
    return change[:place] + bytes([change[place] ^ mask]) + change[place + 1 :]


def apply_names(names: dict[str, Node | Folder], changes: dict[str, Node | Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def used_bytes(folder: Folder) -> int:
    return sum(used_bytes(node) if isinstance(node, Folder) else len(node.data) for node in folder.names.values())


def paths(folder: Folder, above: str) -> Iterator[str]:
    for name, node in folder.names.items():
        if isinstance(node, Folder):
            yield from paths(node, f"{above}/{name}")
        else:
            yield f"{above}/{name}"


def crash(folder: Folder, chance: random.Random | None, survival: float) -> None:
    """Lose unsynced changes; with `chance` some of them have reached the disk, in any order, whole or torn."""
    kept = chance.randint(0, len(folder.changes)) if chance else 0
    for changes in folder.changes[:kept]:
        apply_names(folder.durable, changes)
    folder.names = dict(folder.durable)
    folder.changes = []
    for node in folder.names.values():
        if isinstance(node, Folder):
            crash(node, chance, survival)
        else:
            _crash_node(node, chance, survival)


def _crash_node(node: Node, chance: random.Random | None, survival: float) -> None:
    data, size = bytearray(node.durable), node.durable_size
    if chance:
        for position, change in node.changes:
            if chance.random() < survival:
                torn = change[: chance.randint(0, len(change))] if change and chance.random() < 0.2 else change
                size = _apply(data, size, position, torn)
    node.data, node.size = data, size
    node.durable, node.durable_size = bytearray(data), size
    node.changes = []
