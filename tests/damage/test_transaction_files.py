"""Files about transactions and producers that are gone, cut, swapped or plausibly wrong are found, after a clean stop too."""

import struct

import pytest

from horolog.broker.log.partition import closing
from horolog.broker.log.producers import snapshot_file
from tests.support.log_model import DIRECTORY, Model, small_config
from tests.support.transactional import aborted_in
from tests.unit.broker.log.recovery.test_recovery import bases, fill, transaction

ENTRY_BYTES = 34
FOUND_BY_MARKERS = ["missing", "emptied", "shortened", "cut inside", "random", "swapped", "one more"]
"""Found in a folder of Kafka's too, about which nothing else is known: the log's own markers tell."""
KINDS = [*FOUND_BY_MARKERS, "wrong producer", "wrong first offset"]


def built():
    """A log of some segments in which transactions were aborted, stopped cleanly."""
    model = Model(small_config(segment_bytes=1500, segment_index_bytes=4000))
    for n in range(6):
        transaction(model, 7 + n % 2, n // 2 * 1, committed=False)
        transaction(model, 9, n, committed=True)
        fill(model, 2)
    model.partition.sync()
    return model


@pytest.mark.parametrize("place", range(2, 26))
def test_after_a_kill_a_bit_in_what_no_seal_vouches_for(place):
    """Its markers alone do not tell whose transactions they ended, nor where those began."""
    model = built()
    path = paths(model, ".txnindex")[-1]
    good = model.storage.read_all(path)
    wanted = aborted_in(model.partition, 0, 1 << 40)
    assert good
    data = bytearray(good)
    data[place] ^= 1
    put(model, path, bytes(data))
    model.kill_and_open()
    assert aborted_in(model.partition, 0, 1 << 40) == wanted
    assert model.storage.read_all(path) == good


def paths(model, suffix):
    return [f"{DIRECTORY}/{name}" for name in sorted(model.storage.list_dir(DIRECTORY)) if name.endswith(suffix)]


def put(model, path, data):
    mtime_ms = model.storage.stat(path)[1] // 1_000_000
    model.storage.create(path).pwritev([data], 0)
    model.storage.set_mtime_ms(path, mtime_ms)


def spoil(model, path, kind):
    data = model.storage.read_all(path)
    first = list(struct.unpack_from(">hqqqq", data))
    if kind == "missing":
        model.storage.remove(path)
        return
    if kind == "swapped":
        other = next(one for one in paths(model, ".txnindex") if one != path)
        theirs = model.storage.read_all(other)
        put(model, other, data)
        put(model, path, theirs)
        return
    if kind == "wrong producer":
        first[1] += 1
    if kind == "wrong first offset":
        first[2] = max(0, first[2] - 1)
    changed = struct.pack(">hqqqq", *first) + data[ENTRY_BYTES:]
    more = struct.pack(">hqqqq", 0, 5, first[3], struct.unpack_from(">q", data, len(data) - 16)[0] + 1, 1 << 40)
    put(
        model,
        path,
        {
            "emptied": b"",
            "shortened": data[:-ENTRY_BYTES],
            "cut inside": data[:-5],
            "random": bytes(n * 7 % 256 for n in range(len(data))),
            "one more": data + more,
        }.get(kind, changed),
    )


@pytest.mark.parametrize("was_clean", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.parametrize(("kind", "seals"), [(one, True) for one in KINDS] + [(one, False) for one in FOUND_BY_MARKERS])
def test_transaction_index(kind, was_clean, seals):
    """A reader of committed records would see aborted ones, or miss others."""
    model = built()
    end = model.partition.log_end_offset
    aborted = aborted_in(model.partition, 0, end)
    assert len(aborted) == 6
    assert len(bases(model)) > 2
    closing.close(model.partition)
    if not seals:
        model.storage.remove(f"{DIRECTORY}/horolog-seals")
    files = paths(model, ".txnindex")
    assert len(files) > 1
    spoil(model, files[0], kind)
    model.reopen(was_clean=was_clean)
    assert aborted_in(model.partition, 0, end) == aborted
    assert model.partition.last_stable_offset == end
    model.partition.sync()
    model.reopen(was_clean=was_clean)
    assert aborted_in(model.partition, 0, end) == aborted
    assert model.partition.folder.counters.indexes_rebuilt.value == 0, "it is right again"


@pytest.mark.parametrize("was_clean", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.parametrize(
    "kind", ["missing", "emptied", "random", "cut", "an older one's contents", "a newer one's contents"]
)
def test_producer_snapshot(kind, was_clean):
    """Producers are known again from the log: a batch that is sent again is told where it is."""
    model = built()
    closing.close(model.partition)
    newest = paths(model, ".snapshot")[-1]
    oldest = paths(model, ".snapshot")[0]
    data = model.storage.read_all(newest)
    expected = {one.producer_id: one.last_sequence for one in snapshot_file.decode(data)}
    if kind == "missing":
        model.storage.remove(newest)
    elif kind == "an older one's contents":
        put(model, newest, model.storage.read_all(oldest))
    elif kind == "a newer one's contents":
        put(model, oldest, data)
        model.storage.remove(newest)
    else:
        put(model, newest, {"emptied": b"", "random": bytes(range(200)), "cut": data[:-7]}[kind])
    model.reopen(was_clean=was_clean)
    found = {one.producer_id: one.last_sequence for one in model.partition.producers.snapshot()}
    if kind == "an older one's contents":
        assert found.keys() <= expected.keys()  # a whole snapshot under another name of the same log is believed
    else:
        assert found == expected
    assert model.partition.last_stable_offset == model.partition.log_end_offset
