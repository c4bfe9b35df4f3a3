"""What goes wrong in the simulation: ends of the broker at any operation of its disk, failing disks, damage at rest, clocks that jump."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.errors import ProtocolError
from horolog.protocol.records.entries import base_offset_of, check_crc, records_of_entry
from horolog.protocol.records.head import heads_in
from tests.simulation.admin import NAMES
from tests.simulation.model import PartitionModel
from tests.simulation.world import DATA

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

CHANGES_UNTIL_THE_END = (1, 2, 3, 5, 8, 13, 21, 40, 80)
SURVIVAL = (0.0, 0.5, 0.5, 0.9, 1.0)
OFFSET_BYTES = 8
KEPT_TWICE = ("horolog-log-starts", "log-start-offset-checkpoint")
"""One of them at a time, and the next when a start has ended it."""
KNOW_PRODUCERS = (".snapshot", "horolog-producers")
TRUNCATED_TO_BYTES = (0, 1, 30, 61, 90)
JUMPS_MS = (-86_400_000, -3_600_000, -5_000, 5_000, 3_600_000)


class Chaos:
    """Asks the storage and the clock for what goes wrong."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._chance = simulation.world.chance
        self.active = False
        """Whether the disk may be failing."""
        self.has_jumped = False
        """Ahead: files that are old by such a clock are not deleted at once."""
        self.latest_ms = 0
        """The latest time that the clock has shown before a jump."""

    # -- while the broker runs

    def end_at_an_operation(self) -> None:
        """The broker ends at its n-th change of the disk."""
        changes = self._chance.choice(CHANGES_UNTIL_THE_END)
        last_write_bytes = self._chance.choice(TRUNCATED_TO_BYTES) if self._chance.random() < 0.3 else None
        self._world.note("end is set", changes, last_write_bytes)
        self._world.storage.power_off_after(changes, last_write_bytes=last_write_bytes)

    def fail_disk(self) -> None:
        storage, chance = self._world.storage, self._chance
        kind = chance.choice(self._simulation.theme.faults)
        part = chance.choice(self._simulation.theme.parts)
        times = chance.choice((1, 1, 1, 2, ALL))
        self._world.note("fault", kind, part, times if times < ALL else "lasting")
        self._world.counts[f"fault: {kind}"] += 1
        self.active = True
        if kind == "full":
            storage.capacity_bytes = storage.used_bytes() + chance.choice((0, 50, 400))
        elif kind == "torn write":
            storage.fail("write", part, times=times, code=errno.ENOSPC, torn_bytes=chance.choice((1, 30, 100)))
        elif kind == "lost pages":
            storage.fail("sync", part, evicting=True)
        else:
            storage.fail(kind, part, times=times)
        if kind in ("sync", "lost pages", "sync_dir"):
            self._simulation.syncs_fail = True
            self._simulation.pages_may_be_lost |= kind == "lost pages"

    def heal(self) -> None:
        if self.active:
            self._world.note("healed")
            self._world.storage.heal()
            self.active = False

    def jump(self) -> None:
        by_ms = self._chance.choice(JUMPS_MS)
        self._world.note("clock jumps", by_ms)
        self.has_jumped |= by_ms > 0
        self.latest_ms = max(self.latest_ms, self._world.clock.wall_ms())
        self._world.clock.set_wall_ms(self._world.clock.wall_ms() + by_ms)

    # -- between two brokers

    def damage(self) -> None:
        """Flip one bit of one file, and expect no more than what was in it to be missing."""
        kind = self._chance.choice(self._simulation.theme.damaged)
        if kind in KEPT_TWICE and self._simulation.mends_may_fail:
            return
        paths = sorted(
            path for path in self._world.storage.files() if path.endswith(kind) and self._is_fair(path, kind)
        )
        paths = [path for path in paths if self._world.storage.file_node(path).size]
        if not paths:
            return
        path = self._chance.choice(paths)
        position = self._chance.randrange(self._world.storage.file_node(path).size)
        if kind == ".log" and not self._note_damage(path, position):
            return
        mask = 1 << self._chance.randrange(8)
        self._world.note("bit flip", path, position, mask)
        self._world.counts[f"bit flip: {kind}"] += 1
        self._world.storage.corrupt(path, position, mask)
        hit = self._partition_of(path)
        if hit is not None and path.endswith(KNOW_PRODUCERS):
            hit.producers_damaged = True
        if kind == "horolog-cluster":
            self._simulation.configs_may_be_lost = True

    @staticmethod
    def _is_fair(path: str, kind: str) -> bool:
        """Records of transactions and of coordinators are not damaged: what their loss means is not the log's business."""
        return kind != ".log" or path.startswith(tuple(f"{DATA}/{name}-" for name in NAMES))

    def _note_damage(self, path: str, position: int) -> bool:
        """Put the batch around a position on record; False if that is no batch."""
        partition = self._partition_of(path)
        data = self._world.storage.read_all(path)
        if partition is None or path.count("-delete/"):
            return False
        try:
            for entry in heads_in(data):
                if not check_crc(data, entry.position, entry.size_bytes, entry.magic):
                    return False
                if entry.position <= position < entry.position + entry.size_bytes:
                    if partition.was_compacted and position < entry.position + OFFSET_BYTES:
                        return False  # without a seal nothing tells it from another offset that fits
                    partition.damaged.update(range(base_offset_of(data, entry), entry.last_offset + 1))
                    partition.learn_places((one.offset, one.value or b"") for one in records_of_entry(data, entry))
                    return True
        except ProtocolError:
            return False
        return False

    def _partition_of(self, path: str) -> PartitionModel | None:
        folder = path.split("/")[-2]
        for topic in self._simulation.topics:
            for partition in topic.partitions:
                if folder == f"{topic.name}-{partition.index}":
                    return partition
        return None
