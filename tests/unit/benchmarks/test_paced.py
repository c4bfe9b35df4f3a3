"""How far an answer of Fetch reaches, told from its headers."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import frames, paced


@given(counts=st.lists(st.integers(1, 9), max_size=5), cut=st.integers(0, 60))
def test_the_next_offset_lies_behind_the_last_whole_batch(counts, cut):
    batches = [frames.batch([b"v"] * count, 0) for count in counts]
    data, offset = b"", 0
    for part, count in zip(batches, counts, strict=True):
        data += offset.to_bytes(8, "big") + part[8:]
        offset += count
    assert paced.next_offset(memoryview(data), 0) == offset
    torn = (data + offset.to_bytes(8, "big") + frames.batch([b"v"], 0)[8:])[: len(data) + cut]
    assert paced.next_offset(memoryview(torn), 0) == offset


@given(st.integers(1, 20))
def test_old_messages_count_one_by_one(count):
    assert paced.next_offset(memoryview(frames.message_set([b"value"] * count, 0)), 0) == count
