"""A data folder on the disk with a topic, records and positions, as a broker has left it, for commands."""

from horolog.broker.log.files import MetaProperties, meta_properties
from horolog.broker.log.partition import Resources, closing
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.log.storage import RealStorage
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from tests.support.log_model import NEW, NOW_MS, encode, small_config

TOPIC = StoredTopic("orders", b"o" * 16, 1, {})


def make(folder, batches=6):
    """Write the folder; it has that many batches of one record."""
    storage, path = RealStorage(), str(folder)
    storage.make_dir(path)
    meta_properties.save(storage, path, MetaProperties(1, 3, "c" * 22, "d" * 22), NOW_MS)
    ClusterFile(storage, path).save([TOPIC], {}, 3_000, {})
    place = PartitionFolder("orders", 0, f"{path}/orders-0")
    partition = create_partition(place, TOPIC.id, small_config(), Resources(storage), NOW_MS)
    for number in range(batches):
        partition.append(encode(2, 0, [NOW_MS + number], [b"v" * 200]), NOW_MS, produce_version=NEW)
        partition.flush()
    closing.close(partition)
    return folder


def log_of(folder):
    return b"".join(one.read_bytes() for one in sorted((folder / "orders-0").glob("*.log")))
