"""The only place with file calls: the disk, the same in memory for tests, and an overlay that keeps changes in memory.

This is the lowest room of the log. A room's front is its `__init__`: code outside imports only from there, which a test and
import-linter enforce.
"""

from horolog.broker.log.storage import aside_names, modes
from horolog.broker.log.storage.aside_names import DAMAGED, DAMAGED_SUFFIX, TORN, SetAside, parse_name
from horolog.broker.log.storage.faults import DataFolderError, FileMissing, FolderInUse, NotHere, StorageFault, fault
from horolog.broker.log.storage.file_slice import SENT_IN_A_TURN_BYTES
from horolog.broker.log.storage.folder_lock import LOCK_FILE, lock_folder, make_folder
from horolog.broker.log.storage.memory_storage import MemoryStorage
from horolog.broker.log.storage.overlay import Changed, OverlayStorage
from horolog.broker.log.storage.read_only import ReadOnlyFile, ReadOnlyStorage
from horolog.broker.log.storage.real_file import JOIN_BELOW_BYTES, NOT_WRITABLE, RealFile
from horolog.broker.log.storage.refusing import RefusingFile, RefusingStorage, refused
from horolog.broker.log.storage.shared_sync import SharedSyncs
from horolog.broker.log.storage.storage import (
    CANNOT_WRITE,
    NO_DESCRIPTORS,
    DiskLooks,
    File,
    Lock,
    RealStorage,
    Storage,
    default_max_open_files,
    parent_of,
)

__all__ = [
    "CANNOT_WRITE",
    "DAMAGED",
    "DAMAGED_SUFFIX",
    "JOIN_BELOW_BYTES",
    "LOCK_FILE",
    "NOT_WRITABLE",
    "NO_DESCRIPTORS",
    "SENT_IN_A_TURN_BYTES",
    "TORN",
    "Changed",
    "DataFolderError",
    "DiskLooks",
    "File",
    "FileMissing",
    "FolderInUse",
    "Lock",
    "MemoryStorage",
    "NotHere",
    "OverlayStorage",
    "ReadOnlyFile",
    "ReadOnlyStorage",
    "RealFile",
    "RealStorage",
    "RefusingFile",
    "RefusingStorage",
    "SetAside",
    "SharedSyncs",
    "Storage",
    "StorageFault",
    "aside_names",
    "default_max_open_files",
    "fault",
    "lock_folder",
    "make_folder",
    "modes",
    "parent_of",
    "parse_name",
    "refused",
]
