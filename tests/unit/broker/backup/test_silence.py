"""For how long no request of a backup has succeeded, or its disk has not answered: what ends a silence, and how it is said once."""

import os
import threading

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.backup.silence import LOOK_EVERY_S, SILENT_S, HeardDisk, HeardStore, look_on
from horolog.broker.log.storage import FileMissing, ReadOnlyStorage
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome
from tests.support.waiting import wait_until


class Failing(MemoryStore):
    """A store in memory that may fail each request, which takes as long as the test says."""

    fault = None
    takes_s = 0.0

    def _before(self, *_):
        self._clock.advance(int(self.takes_s * 1000))
        if self.fault is not None:
            raise self.fault

    def create(self, key, data):
        self._clock.advance(int(self.takes_s * 1000))
        if self.fault is not None:
            return Created(Outcome.UNKNOWN, str(self.fault), isinstance(self.fault, StoreRefusal))
        return super().create(key, data)

    def get(self, key):
        self._before()
        return super().get(key)

    def get_range(self, key, start, end):
        self._before()
        return super().get_range(key, start, end)

    def stat(self, key):
        self._before()
        return super().stat(key)

    def list(self, prefix=""):
        self._before()
        for one in super().list(prefix):
            yield one
            self._before()

    def folders(self, prefix):
        self._before()
        return super().folders(prefix)

    def delete(self, key):
        self._before()
        super().delete(key)


class World:
    def __init__(self):
        self.clock = ManualClock()
        self.store = Failing(self.clock)
        self.heard = HeardStore(self.store, "s3://lake/b", self.clock.monotonic)
        self.silence = self.heard.silence
        self.store.create("a/1", b"one")
        self.store.create("a/2", b"two")


REQUESTS = {
    "create": lambda store: store.create("b", b"new").outcome,
    "get": lambda store: store.get("a/1"),
    "get_range": lambda store: bytes(store.get_range("a/1", 1, 3)),
    "stat": lambda store: store.stat("a/1").size_bytes,
    "list": lambda store: sorted(one.key for one in store.list("a")),
    "folders": lambda store: list(store.folders("")),
    "delete": lambda store: store.delete("a/1"),
}


@pytest.fixture
def world():
    return World()


def asked(world, request):
    """Whether the request has succeeded."""
    try:
        return REQUESTS[request](world.heard) is not Outcome.UNKNOWN
    except StoreError:
        return False


@pytest.mark.parametrize("request_", REQUESTS)
def test_each_request_is_passed_on(world, request_):
    other = World()
    assert REQUESTS[request_](world.heard) == REQUESTS[request_](other.store)
    assert list(world.store.list()) == list(other.store.list())


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_that_fails_for_long_is_said_once_and_an_answer_ends_it(world, request_):
    world.store.fault = StoreError("s3://lake/b: the store does not answer in time")
    world.store.takes_s = SILENT_S - 1
    assert not asked(world, request_)
    assert world.silence.look() is None
    assert not asked(world, request_)
    assert world.silence.look() == (
        "no request to the store has succeeded for 15 s: s3://lake/b: the store does not answer in time"
    )
    assert not asked(world, request_)
    assert world.silence.look() is None
    world.store.fault = None
    assert asked(world, request_)
    world.clock.advance(100_000)
    assert world.silence.look() is None, "nothing is asked of the store between two rounds"
    world.store.fault = StoreError("again")
    assert not asked(world, "get")
    assert not asked(world, "get")
    assert "again" in world.silence.look()


def test_a_request_that_hangs_is_said_while_it_does(world):
    seen = []
    world.store.get = lambda _: seen.append((world.clock.advance(int(SILENT_S * 1000)), world.silence.look()))
    world.heard.get("a/1")
    assert seen[0][1] == "no request to the store has succeeded for 15 s: s3://lake/b: it does not answer"
    assert world.silence.look() is None


@pytest.mark.parametrize("request_", ["create", "get", "list"])
def test_a_refusal_is_an_answer(world, request_):
    world.store.fault, world.store.takes_s = StoreRefusal("access denied"), SILENT_S + 1
    assert not asked(world, request_)
    assert world.silence.look() is None


def test_a_missing_object_is_an_answer(world):
    world.store.takes_s = SILENT_S + 1
    with pytest.raises(FileNotFoundError):
        world.heard.get("none")
    assert world.silence.look() is None


def test_a_key_that_is_taken_is_an_answer(world):
    world.store.takes_s = SILENT_S + 1
    assert world.heard.create("a/1", b"other").outcome is Outcome.TAKEN
    assert world.silence.look() is None


def test_a_page_of_a_list_may_fail(world):
    found = world.heard.list("a")
    next(found)
    world.store.fault, world.store.takes_s = StoreError("away"), SILENT_S
    with pytest.raises(StoreError):
        next(found)
    assert "away" in world.silence.look()


READS = {
    "list_dir": lambda storage, folder: storage.list_dir(folder),
    "exists": lambda storage, folder: storage.exists(f"{folder}/log"),
    "is_dir": lambda storage, folder: storage.is_dir(folder),
    "stat": lambda storage, folder: storage.stat(f"{folder}/log"),
    "read_all": lambda storage, folder: storage.read_all(f"{folder}/log"),
    "pread": lambda storage, folder: storage.open_apart(f"{folder}/log").pread(2, 1),
}


@pytest.mark.parametrize("read", READS)
def test_the_disk_is_read_and_each_answer_ends_its_silence(tmp_path, read):
    (tmp_path / "log").write_bytes(b"abcd")
    clock, noted = ManualClock(), []
    disk = HeardDisk(clock.monotonic)
    begin = disk.silence.begin
    disk.silence.begin = lambda reason: (noted.append(reason), begin(reason))
    assert READS[read](disk.storage(), str(tmp_path)) == READS[read](ReadOnlyStorage(), str(tmp_path))
    assert noted
    assert noted[0].startswith(f"reading {tmp_path}")
    clock.advance(100_000)
    assert disk.silence.look() is None


def test_a_file_that_is_not_there_is_an_answer(tmp_path):
    clock = ManualClock()
    disk = HeardDisk(clock.monotonic)
    with pytest.raises(FileMissing):
        disk.storage().read_all(f"{tmp_path}/none")
    clock.advance(100_000)
    assert disk.silence.look() is None


def test_a_read_that_hangs_is_said_while_it_does(tmp_path):
    """A pipe is a file whose opening hangs, for as long as nobody writes it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    clock, read = ManualClock(), []
    disk = HeardDisk(clock.monotonic)
    reader = threading.Thread(target=lambda: read.append(disk.storage().read_all(str(path))), daemon=True)
    reader.start()
    wait_until(lambda: "None" not in repr(disk))
    assert disk.silence.look() is None
    clock.advance(int(SILENT_S * 1000))
    assert disk.silence.look() == f"the disk has not answered for 15 s: reading {path}"
    assert disk.silence.look() is None
    path.write_bytes(b"at last")
    reader.join()
    assert read == [b"at last"]
    clock.advance(int(SILENT_S * 1000))
    assert disk.silence.look() is None
    assert repr(disk) == "<HeardDisk: <Silence: the disk has not answered since None>>"


def test_it_looks_again_and_again(world):
    class Over(Exception):
        pass

    said, slept = [], []

    def sleep(seconds):
        slept.append(seconds)
        world.clock.advance(int(SILENT_S * 1000))
        if len(slept) == 4:
            raise Over

    world.silence.begin("it hangs")
    with pytest.raises(Over):
        look_on([HeardDisk(world.clock.monotonic).silence, world.silence], said.append, sleep)
    fault = {"fault": "no request to the store has succeeded for 15 s: it hangs"}
    assert said == [{"alive": True}, fault, {"alive": True}, {"alive": True}]
    assert slept == [LOOK_EVERY_S] * 4
    assert repr(world.heard).startswith("<HeardStore of <MemoryStore")
    assert repr(world.silence) == "<Silence: no request to the store has succeeded since 0.0>"
