"""Data folders in memory, a store, and the rounds of a backup between them."""

from itertools import count

from horolog.base.clock import ManualClock
from horolog.broker.backup.looking import SourceFolders
from horolog.broker.backup.objects import PieceReader
from horolog.broker.backup.pacing import BytePace
from horolog.broker.backup.restoring import restore
from horolog.broker.backup.rounds import Means, Rounds
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.files import MetaProperties, checkpoints, meta_properties
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.broker.transfer.whole_folder import ExportTarget
from horolog.stores.memory_store import MemoryStore
from tests.support.imported import EVENTS, TABLE, Folder
from tests.support.log_model import NOW_MS, new_storage

SETTINGS = from_layers(Layers(static={"node.id": "1"}))
DAY_MS = 86_400_000


class BackedUp:
    """The two topics of `imported.Folder` with the files beside them; each round happens a second after the one before."""

    def __init__(self):
        self.source = Folder()
        self.storage = self.source.storage
        self.clock = ManualClock(NOW_MS)
        self.store = MemoryStore(self.clock)
        meta_properties.save(self.storage, "/data", MetaProperties(1, 1, "c" * 22, "d" * 22), NOW_MS)
        self.save_record()
        self.names = (f"{number:032x}" for number in count())
        self.rounds = self.new_rounds()

    def save_record(self, *topics: StoredTopic):
        ClusterFile(self.storage, "/data").save(topics or (EVENTS, TABLE), {}, 3_000, {})

    def folders(self):
        return SourceFolders(["/data"], lambda: self.storage, self.clock.wall_ms)

    def new_rounds(self, history_ms=DAY_MS, store=None):
        means = Means(BytePace(0, self.clock.monotonic, self.slept), lambda: next(self.names), self.slept, history_ms)
        return Rounds(self.folders(), store or self.store, means)

    def slept(self, seconds):
        self.clock.advance(int(seconds * 1000))

    def round(self, take_ends=dict):
        self.clock.advance(1_000)
        return self.rounds.run(take_ends)

    def log_of(self, topic, storage=None, folder="/data"):
        """The bytes of each log of its first partition."""
        where = storage or self.storage
        directory = f"{folder}/{topic}-0"
        return {
            one: where.read_all(f"{directory}/{one}") for one in where.list_dir(directory) if one.endswith(LOG_SUFFIX)
        }

    def restored(self, moment, topics=(), storage=None):
        """What a restore into another folder says, and the storage with that folder."""
        storage = storage or new_storage()
        target = ExportTarget(storage, "/data", SETTINGS, "e" * 22, NOW_MS)
        return restore(moment, PieceReader(self.store), target, topics), storage


def recovery_points(storage):
    return checkpoints.load_offsets(storage, f"/data/{checkpoints.RECOVERY_POINTS}").offsets
