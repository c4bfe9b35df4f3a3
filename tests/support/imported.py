"""A source of an import in memory, and the store that it goes to."""

from functools import partial

from horolog.base.clock import ManualClock
from horolog.broker.log.partition import Resources, log_start
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.transfer import importing
from horolog.broker.transfer.founding_entries import Beginning
from horolog.broker.transfer.importing import Source
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.stores.memory_store import MemoryStore
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, small_config

EVENTS, TABLE = StoredTopic("events", b"e" * 16, 2, {}), StoredTopic("table", b"t" * 16, 1, {})


class Folder:
    """Two topics: one of segments, whose second partition is missing, and a compacted one with a start and two epochs."""

    def __init__(self):
        self.storage = new_storage()
        self.partitions = {
            ("events", 0): self.new(EVENTS, small_config()),
            ("table", 0): self.new(TABLE, small_config(compact=True, delete=False, segment_bytes=1 << 20)),
        }
        self.fill("events", 12)
        self.fill("table", 5)
        table = self.partitions["table", 0]
        table.lead(4)
        self.fill("table", 3)
        log_start.move(table, 2)

    def new(self, topic, config):
        place = PartitionFolder(topic.name, 0, f"/data/{topic.name}-0")
        return create_partition(place, topic.id, config, Resources(self.storage), NOW_MS)

    def fill(self, topic, count):
        partition = self.partitions[topic, 0]
        for number in range(count):
            data = encode(2, 0, [NOW_MS + number * 7 % 5], [b"v" * 200])
            partition.append(data, NOW_MS, produce_version=NEW)
            partition.flush()

    def source(self, cluster_id="c1", **changes):
        beginning = Beginning(1, "host", (EVENTS, TABLE), {}, {}, (), 3_000)
        opened = {"open": self.open, "close": lambda _: None, **changes}
        return Source(cluster_id, beginning, **opened)

    def open(self, topic, index):
        return self.partitions.get((topic.name, index))


class Target:
    """An empty prefix."""

    def __init__(self):
        self.store = MemoryStore(ManualClock(NOW_MS))
        self.waiting = WaitingStore(self.store, at_once=1)
        self.count = 0

    def look(self, source):
        self.count += 1
        nonce = partial(lambda number: b"%16d" % number, self.count)
        return self.waiting.result(importing.look(self.waiting.access, source, nonce))

    def bring(self, source):
        return self.waiting.result(importing.bring(self.waiting.access, source, self.look(source)))

    def result(self, steps):
        return self.waiting.result(steps)

    def objects(self):
        return {one.key: self.store.get(one.key) for one in self.store.list()}
