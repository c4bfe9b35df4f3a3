"""Keeps blocks of objects as files of a local folder, one file a block, within a limit.

The folder is emptied when a broker starts. It would have to be read to be believed, and a broker that starts again leads other partitions
than before. A file a block costs a name for each MiB, and gives its space back at once on every file system.
A block that cannot be written is kept in memory: a full disk does not end reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count

from horolog.broker.bucket.block_ledger import Block, BlockLedger
from horolog.broker.log.storage import File, FileMissing, Storage, StorageFault
from horolog.protocol.primitives import Unread
from horolog.stores.object_store import Bytes

log = logging.getLogger(__name__)

FOLDER = "horolog-blocks"
SPARE_BYTES = 16 << 20
"""The size of the blocks that memory takes while the disk takes none."""


class BlockFiles:
    """The blocks that are kept. Methods other than the constructor raise no fault of the disk."""

    def __init__(self, storage: Storage, data_folder: str, limit_bytes: Callable[[], int]) -> None:
        """Raises StorageFault."""
        self._storage = storage
        self._folder = f"{data_folder}/{FOLDER}"
        self._names = count()
        self._files: dict[Block, File] = {}
        self._spare: dict[Block, bytes] = {}
        self._on_disk = BlockLedger(limit_bytes)
        self._in_memory = BlockLedger(lambda: SPARE_BYTES)
        self.limit_bytes = limit_bytes
        self._empty()

    def __repr__(self) -> str:
        return f"<BlockFiles in {self._folder}: {self._on_disk!r}, in memory {self._in_memory!r}>"

    def _empty(self) -> None:
        if not self._storage.is_dir(self._folder):
            self._storage.make_dir(self._folder)
        for name in self._storage.list_dir(self._folder):
            self._storage.remove(f"{self._folder}/{name}")

    @property
    def kept_bytes(self) -> int:
        return self._on_disk.kept_bytes + self._in_memory.kept_bytes

    @property
    def unread_bytes(self) -> int:
        """Of the blocks that no reader has read yet."""
        return self._on_disk.unread_bytes + self._in_memory.unread_bytes

    def __contains__(self, block: Block) -> bool:
        return block in self._files or block in self._spare

    def read(self, block: Block, size: int, position: int) -> bytes | None:
        """Bytes of a block; None if it is not kept."""
        data = self._spare.get(block)
        if data is not None:
            self._in_memory.use(block)
            return data[position : position + size]
        file = self._files.get(block)
        if file is None:
            return None
        self._on_disk.use(block)
        return self._read(block, file, size, position)

    def unread(self, block: Block, size: int, position: int) -> Unread | None:
        """Bytes of a block that stay where they are until they are let go, also if the block goes; None if they have to be read."""
        file = self._files.get(block)
        if file is None or (found := file.unread(size, position)) is None:
            return None
        try:
            if not found.keep():
                return None
        except StorageFault:
            return None  # reading drops the block
        self._on_disk.use(block)
        return found

    def read_whole(self, block: Block) -> bytes | None:
        """All bytes of a block; None if it is not kept."""
        size_bytes = self._on_disk.size_of(block) or self._in_memory.size_of(block)
        return self.read(block, size_bytes, 0)

    def _read(self, block: Block, file: File, size: int, position: int) -> bytes | None:
        try:
            return file.pread(size, position)
        except StorageFault as fault:
            log.warning("%s is read from the store again: %s", block.key, fault)
            self.drop(block)
            return None

    def new_path(self) -> str:
        """The path of a file for a block."""
        return f"{self._folder}/{next(self._names):020d}"

    def write(self, path: str, data: Bytes) -> bool:
        """Write the file of a block, in any thread; False if the disk does not take it."""
        try:
            file = self._storage.open_apart(path, create=True)
            try:
                file.pwritev([data], 0)
            finally:
                file.close()
        except StorageFault as fault:
            log.warning("a block is kept in memory: %s", fault)
            self._remove(path)
            return False
        return True

    def keep(self, block: Block, data: Bytes, path: str | None, *, is_awaited: bool = False) -> None:
        """Keep a block that is written to a file, or in memory; a reader may wait for it. The least used ones go for it."""
        self.drop(block)
        if path is None:
            self._spare[block] = bytes(data)
            going = self._in_memory.add(block, len(data))
        else:
            self._files[block] = self._storage.open(path)
            going = self._on_disk.add(block, len(data), is_awaited=is_awaited)
        for one in going:
            self.drop(one)

    def drop(self, block: Block) -> None:
        self._on_disk.drop(block)
        self._in_memory.drop(block)
        self._spare.pop(block, None)
        file = self._files.pop(block, None)
        if file is not None:
            file.close()
            self._remove(file.path)

    def _remove(self, path: str) -> None:
        try:
            self._storage.remove(path)
        except FileMissing:
            return
        except StorageFault as fault:
            log.warning("%s is kept until the next start: %s", path, fault)
