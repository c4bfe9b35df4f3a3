"""A machine in memory with one data folder, on which a log manager starts, crashes and starts again."""

from horolog.base.clock import ManualClock
from horolog.broker.config.settings import load
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import MemoryStorage
from tests.support.log_model import NEW, NOW_MS, encode, small_config

CONFIG = small_config()
TOPIC_ID = bytes(range(16))


class Machine:
    def __init__(self):
        self.storage = MemoryStorage()
        self.clock = ManualClock(NOW_MS)

    def manager(self, **flags):
        return LogManager(["/srv/data"], self.storage, self.clock, load(None, {}, flags)[0])

    def start(self, config=CONFIG):
        logs = self.manager()
        logs.open(lambda _topic: config)
        return logs


def append(partition, timestamp=5):
    partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    partition.flush()
