"""Stand-ins for the log under the cluster: folders that outlive a restart, and that fail on demand."""

from __future__ import annotations

from types import SimpleNamespace

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.membership import SoleMember
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.files import checkpoints
from horolog.broker.log.manager import Placing
from horolog.broker.log.manager.data_folder import remove_folder
from horolog.broker.log.partition import Condition, RareChanges, Resources
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record


def new_partition(topic, index, config, topic_id):
    """A partition in a memory of its own."""
    storage = MemoryStorage()
    storage.make_dir("/data")
    place = PartitionFolder(topic, index, f"/data/{topic}-{index}")
    return create_partition(place, topic_id, config, Resources(storage), Machine.NOW_MS)


def fill(partition, *timestamps, **batch):
    """Write one batch of records with these times."""
    records = [Record(offset, time, 0, b"k", b"v") for offset, time in enumerate(timestamps)]
    partition.append(bytes(encode_batch(records, **batch)), Machine.NOW_MS, produce_version=9)
    partition.flush()


class FakeFolder:
    """The one data folder of stand-ins."""

    path = "/data"
    fault = None

    def __init__(self, partitions):
        self.partitions = partitions
        self.space = (1000, 400)

    def keys(self):
        return list(self.partitions)

    def disk_space(self):
        if self.space is None:
            raise StorageFault("the system does not say")
        return self.space


class FakeFolders(list):
    """All of them work."""

    def usable(self):
        return self

    def placing(self):
        return Placing({})

    def may_lack(self, recorded):
        return bool(list(recorded))


class FakeLogs:
    """`on_disk` is the disk's content: (topic, index) -> topic id."""

    def __init__(self, on_disk):
        self.on_disk = on_disk
        self.partitions = {}
        self.forgotten = {}
        self.folders = FakeFolders([FakeFolder(self.partitions)])
        self.log_starts = {}
        self.fail_creating = set()
        self.fail_deleting = set()

    def open(self, config_of):
        for (topic, index), topic_id in self.on_disk.items():
            self.partitions[topic, index] = new_partition(topic, index, config_of(topic), topic_id)

    def places_of(self, partitions):
        return {}

    def create(self, topic, index, config, topic_id, place=None):
        assert place is None
        if (topic, index) in self.fail_creating:
            raise StorageFault(f"{topic}-{index}: no space left")
        self.on_disk[topic, index] = topic_id
        partition = self.partitions[topic, index] = new_partition(topic, index, config, topic_id)
        return partition

    def create_or_offline(self, topic, index, config, topic_id, place=None):
        return self.create(topic, index, config, topic_id, place)

    def identify(self, partition, topic_id):
        self.on_disk[partition.topic, partition.index] = partition.topic_id = topic_id

    def write_log_starts(self):
        if self.log_starts is None:
            return set(self.partitions)
        self.log_starts = {key: one.log_start_offset for key, one in self.partitions.items()}
        return set()

    def forget(self, partition):
        key = partition.topic, partition.index
        self.forgotten[key] = self.partitions.pop(key)

    def take_over(self, topic, index, config, topic_id, place, *, was_clean):
        partition = self.partitions[topic, index] = self.forgotten.pop((topic, index))
        assert (partition.topic_id, place, was_clean) == (topic_id, None, True)
        partition.configure(config)
        partition.condition = Condition(f"{topic}-{index}")
        return partition

    def delete(self, partition):
        key = (partition.topic, partition.index)
        if key in self.fail_deleting:
            raise StorageFault(f"{partition}: read-only")
        del self.on_disk[key], self.partitions[key]


class Machine:
    """One data folder; `start` gives the cluster that opens it, as after a crash if the last one was not closed."""

    NOW_MS = 1_700_000_000_000

    def __init__(self, **settings):
        self.storage = MemoryStorage()
        self.storage.make_dir("/data")
        self.storage.sync_dir("/")
        self.folders = {}
        self.settings = from_layers(Layers(static={key.replace("_", "."): value for key, value in settings.items()}))
        self.logs = None

    def start(self, journal=None):
        self.storage.crash()
        self._show_folders()
        self.logs = FakeLogs(self.folders)
        self.logs.resources = SimpleNamespace(storage=self.storage, changes=RareChanges())
        file = ClusterFile(self.storage, "/data")
        membership = SoleMember(self.settings.node_id, self.logs, file, AtOnce())
        membership.journal = journal or membership.journal
        membership.is_shared = journal is not None
        cluster = Cluster("the-cluster", self.settings, self.logs, file, membership)
        cluster.open(self.NOW_MS)
        return cluster

    def _show_folders(self):
        """Files that are looked for by name before the logs are opened."""
        for name in self.storage.list_dir("/data"):
            if self.storage.is_dir(f"/data/{name}"):
                remove_folder(self.storage, f"/data/{name}")
        for (topic, index), topic_id in self.folders.items():
            self.storage.make_dir(f"/data/{topic}-{index}")
            if topic_id is not None:
                checkpoints.save_topic_id(self.storage, f"/data/{topic}-{index}", topic_id)

    def writes(self):
        """A counter of the file's versions: the bytes as they are now."""
        return self.storage.read_all("/data/horolog-cluster")


class SlowJournal:
    """Others append to `entries`; an entry from here is kept when the test says so."""

    written_count = 0

    def __init__(self):
        self.entries = []
        self._asked = []

    def begin(self, state, *, is_news):
        return True

    def append(self, entry, becomes, done):
        assert becomes.number == len(self.entries) + 1
        self._asked.append((entry, done))

    def follow(self, after, done):
        done(self.entries[after:])

    def answer(self):
        entry, done = self._asked.pop(0)
        self.entries.append(entry)
        done(AppendOutcome.WRITTEN)
