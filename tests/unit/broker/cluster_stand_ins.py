"""Stand-ins for the log under the cluster: folders that outlive a restart, and that fail on demand."""

from __future__ import annotations

from broker.cluster import Cluster
from broker.cluster_file import ClusterFile
from broker.log.memory_storage import MemoryStorage
from broker.log.storage import StorageFault
from broker.settings import Layers, from_layers


class FakePartition:
    def __init__(self, topic, index, config, topic_id):
        self.topic = topic
        self.index = index
        self.config = config
        self.topic_id = topic_id
        self.leader_epoch = 0
        self.fault = None

    def __repr__(self):
        return f"{self.topic}-{self.index}"


class FakeLogs:
    """`folders` is what is on the disk: (topic, index) -> topic id."""

    def __init__(self, folders):
        self.folders = folders
        self.partitions = {}
        self.fail_creating = set()
        self.fail_deleting = set()

    def open(self, config_of):
        for (topic, index), topic_id in self.folders.items():
            self.partitions[topic, index] = FakePartition(topic, index, config_of(topic), topic_id)

    def create(self, topic, index, config, topic_id):
        if (topic, index) in self.fail_creating:
            raise StorageFault(f"{topic}-{index}: no space left")
        self.folders[topic, index] = topic_id
        partition = self.partitions[topic, index] = FakePartition(topic, index, config, topic_id)
        return partition

    def delete(self, partition):
        key = (partition.topic, partition.index)
        if key in self.fail_deleting:
            raise StorageFault(f"{partition}: read-only")
        del self.folders[key], self.partitions[key]


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

    def start(self):
        self.storage.crash()
        self.logs = FakeLogs(self.folders)
        cluster = Cluster("the-cluster", self.settings, self.logs, ClusterFile(self.storage, "/data"))
        cluster.open(self.NOW_MS)
        return cluster

    def writes(self):
        """A counter of the file's versions: the bytes as they are now."""
        return self.storage.read_all("/data/horolog-cluster")
