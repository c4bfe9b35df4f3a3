"""Lookups and reads against a linear scan, whatever has happened to the index files, also on a clean start."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.broker.log.partition import closing, log_start, lookups
from horolog.protocol.records.head import heads_in
from tests.support.log_model import CODECS, DIRECTORY, Model, small_config

appends = st.lists(
    st.tuples(
        st.sampled_from([(magic, codec) for magic, codecs in CODECS.items() for codec in codecs]),
        st.lists(st.integers(-1, 60), min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=40,
)


def entry_size(name):
    return 12 if name.endswith("timeindex") else 8


def spoil(storage, name, how, chance, others):
    """Change one index file in a way that disks, people and other brokers do."""
    path = f"{DIRECTORY}/{name}"
    if how == "remove":
        storage.remove(path)
        return
    good = storage.read_all(path)
    size = entry_size(name)
    entries = [good[at : at + size] for at in range(0, len(good), size)]
    changed = {
        "empty": b"",
        "zeros": bytes(len(good)),
        "random": chance.randbytes(len(good) or size),
        "shuffled": b"".join(chance.sample(entries, len(entries))),
        "cut": good[: chance.randint(0, len(good))],
        "half": b"".join(entries[::2]),
        "later": b"".join(one[:-4] + (int.from_bytes(one[-4:], "big") + 1).to_bytes(4, "big") for one in entries),
        "swapped": storage.read_all(f"{DIRECTORY}/{chance.choice(others)}"),
        "preallocated": good + bytes(5 * size),
    }[how]
    mtime_ms = storage.stat(path)[1] // 1_000_000
    storage.create(path).pwritev([changed], 0)
    storage.set_mtime_ms(path, mtime_ms)


HOWS = ["remove", "empty", "zeros", "random", "shuffled", "cut", "half", "later", "swapped", "preallocated"]


def built(history, interval, segment_bytes):
    model = Model(small_config(index_interval_bytes=interval, segment_bytes=segment_bytes, segment_index_bytes=200))
    for (magic, codec), timestamps in history:
        model.append(magic, codec, timestamps, [b"v" * (7 * n % 40) for n in range(len(timestamps))])
    model.flush()
    return model


@settings(max_examples=120, deadline=None)
@given(
    appends,
    st.sampled_from([0, 60, 200, 1000]),
    st.sampled_from([600, 1500, 1 << 20]),
    st.sampled_from(HOWS),
    st.integers(0, 1 << 16),
    st.booleans(),
)
def test_spoilt_indexes_cost_time_but_never_an_answer(history, interval, segment_bytes, how, seed, also_seals):
    model = built(history, interval, segment_bytes)
    closing.close(model.partition)
    model.written = model.partition.high_watermark
    chance = random.Random(seed)
    names = sorted(name for name in model.storage.list_dir(DIRECTORY) if name.endswith("index"))
    for name in names:
        if chance.random() < 0.6:
            others = [other for other in model.storage.list_dir(DIRECTORY) if entry_size(other) == entry_size(name)]
            spoil(model.storage, name, how, chance, [one for one in others if one.endswith("index")] or [name])
    if also_seals:
        model.storage.remove(f"{DIRECTORY}/horolog-seals")
    model.reopen(was_clean=True)
    model.check(max_bytes=chance.randint(1, 3000))
    model.append(2, 0, [30], [b"goes on"])
    model.flush()
    model.check()


@settings(max_examples=60, deadline=None)
@given(appends, st.sampled_from([0, 60, 200]), st.floats(0, 1), st.floats(0, 1))
def test_the_start_and_the_end_of_the_log_hide_records_from_look_ups(history, interval, start, end):
    """The start may lie inside a batch; `upto` is a batch boundary, as the last stable offset is."""
    model = built(history, interval, 1 << 20)
    partition = model.partition
    log_start.delete_records_before(partition, int(start * partition.high_watermark))
    log = partition.read(partition.log_start_offset, 1 << 20)
    boundaries = [partition.log_start_offset, *(entry.last_offset + 1 for entry in heads_in(log))]
    upto = boundaries[int(end * (len(boundaries) - 1))]
    rows = [row for row in model.rows if partition.log_start_offset <= row[0]]
    for target in sorted({row[1] for row in rows if row[1] >= 0} | {0, 61}):
        expected = next(((one[0], one[1]) for one in rows if one[1] >= target), None)
        found = lookups.first_at_or_after(partition, target)
        assert (found and (found.offset, found.timestamp)) == expected
        limited = lookups.first_at_or_after(partition, target, upto)
        assert limited is None or (limited.offset < upto and (limited.offset, limited.timestamp) == expected)
        if expected is not None and expected[0] < upto:
            assert limited is not None
    model.written = partition.high_watermark
    model.check_look_ups()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 16), st.sampled_from([1, 3, 40]))
def test_the_cost_of_a_look_up_does_not_grow_with_the_log(seed, per_batch):
    """However disordered the times are, a lookup reads a few kilobytes around its answer."""
    chance = random.Random(seed)
    model = Model(small_config(index_interval_bytes=400, segment_bytes=1 << 20, segment_index_bytes=1 << 16))
    for n in range(600):
        late = chance.random() < 0.02
        times = [n * 5 + (900 if late else chance.randint(-400, 0)) + 400 for _ in range(per_batch)]
        model.append(2, 0, times, [b"v" * 10] * per_batch)
    model.flush()
    for _ in range(20):
        before = model.storage.operations.get("read", 0)
        target = chance.randint(0, 4500)
        found = lookups.first_at_or_after(model.partition, target)
        expected = next(((row[0], row[1]) for row in model.rows if row[1] >= target), None)
        assert (found and (found.offset, found.timestamp)) == expected
        assert model.storage.operations.get("read", 0) - before <= 8
