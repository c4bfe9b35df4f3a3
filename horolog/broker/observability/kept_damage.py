"""Records that were set aside as damaged and lie in the data folders until the owner has looked at them: as metrics, and as warnings."""

from collections.abc import Iterator

from horolog.broker.base.metrics import Described, Kind, Samples
from horolog.broker.cluster.left_folders import DAMAGED_CHECKPOINTS
from horolog.broker.log.files import meta_properties
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import DAMAGED_SUFFIX
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL

DAMAGED_RECORDS = Described(
    "damaged_records",
    Kind.GAUGE,
    "Damaged copies of metadata files (cluster, journal, identity, checkpoints of workers) in a data folder.",
    ("path",),
)
FAMILIES = (DAMAGED_RECORDS,)

NAMES = (
    *(f"{name}{DAMAGED_SUFFIX}" for name in (FILE_NAME, JOURNAL, meta_properties.FILE_NAME)),
    DAMAGED_CHECKPOINTS,
)


def kept(logs: LogManager) -> Iterator[tuple[str, list[str]]]:
    """The damaged copies in each folder that can be used."""
    for folder in logs.folders:
        if folder.fault is None:
            paths = (f"{folder.path}/{name}" for name in NAMES)
            yield folder.path, [path for path in paths if logs.resources.storage.exists(path)]


def warnings(logs: LogManager) -> Iterator[str]:
    for _, paths in kept(logs):
        for path in paths:
            yield f"{path} is a damaged copy: see docs/durability.md for what may be lost, and remove the copy when you are done with it"


def collect(logs: LogManager) -> Iterator[tuple[Described, Samples]]:
    yield DAMAGED_RECORDS, [((folder,), len(paths)) for folder, paths in kept(logs)]
