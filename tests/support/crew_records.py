"""Records and topics of a crew of workers, and a lone broker that continues on their folders."""

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster import membership
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.manager import LogManager
from horolog.broker.on_record.cluster_file import ClusterFile
from tests.support.at_once import at_once
from tests.support.log_model import NEW, NOW_MS, encode, read_all


def append(partition, *values):
    for value in values:
        partition.append(encode(2, 0, [NOW_MS], [value]), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.sync()


def values(partition):
    return [value for _, _, value in read_all(partition)]


class Alone:
    """A lone broker on the folders of a crew."""

    def __init__(self, crew):
        self.logs = LogManager(crew.folders, crew.storage, crew.clock, crew.settings_of(crew.nodes[0]))
        file = ClusterFile(crew.storage, crew.folders[0], lambda: [one.path for one in self.logs.folders.usable()])
        node = crew.nodes[0]
        self.cluster = Cluster(
            self.logs.cluster_id,
            crew.settings_of(node),
            self.logs,
            file,
            membership.SoleMember(node, self.logs, file, AtOnce()),
            crew.new_id,
        )
        self.cluster.open(NOW_MS)

    def close(self):
        self.cluster.changes.close()
        self.logs.close()


def filled(crew):
    crew.start()
    one = crew.clusters[1]
    at_once(one.create_topics, [NewTopic("a", 3), NewTopic("b", 1)])
    at_once(one.alter_topic_configs, {"a": {"retention.ms": "77"}})
    for name, index in (("a", 0), ("a", 1), ("a", 2), ("b", 0)):
        append(crew.partition(name, index), f"{name}{index}".encode())
    return crew
