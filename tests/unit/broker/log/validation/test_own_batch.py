"""The broker's own batches: not looked at, and yet what the check of a stranger's batch would have made of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.validation import RefusedSet, check, own_batch
from horolog.broker.log.validation.own_batch import NEWEST_PRODUCE_VERSION
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec, codec_of
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.record import Record
from tests.support.logs import topic_config

NOW_MS = 1_700_000_000_000
COMPACTED = replace(topic_config(), compact=True)
TIMES_OF_ITS_OWN = replace(COMPACTED, log_append_time=True)
CONFIGS = (
    COMPACTED,
    TIMES_OF_ITS_OWN,
    *(replace(COMPACTED, compression=name) for name in ("uncompressed", "gzip", "lz4")),
)
ENTRIES = st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=300)), min_size=1, max_size=70)
PRODUCERS = st.none() | st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1))


def as_a_stranger_would(entries, next_offset, config, producer, leader_epoch):
    records = [Record(place, NOW_MS, 0, key, value) for place, (key, value) in enumerate(entries)]
    sent = encode_batch(records)
    if producer is not None:
        number, epoch = producer
        sent = encode_batch(
            records, attributes=TRANSACTIONAL_BIT, producer_id=number, producer_epoch=epoch, base_sequence=0
        )
    return check(sent, next_offset, config, NOW_MS, produce_version=NEWEST_PRODUCE_VERSION, leader_epoch=leader_epoch)


@given(ENTRIES, st.integers(0, 2**62), st.sampled_from(CONFIGS), PRODUCERS, st.integers(0, 2**31 - 1))
def test_a_batch_of_ones_own_is_what_a_check_of_it_would_give(entries, next_offset, config, producer, leader_epoch):
    made = own_batch(entries, next_offset, config, NOW_MS, leader_epoch=leader_epoch, producer=producer)
    assert made == as_a_stranger_would(entries, next_offset, config, producer, leader_epoch)


def test_what_a_topic_wants_otherwise_is_made_so():
    entries = [(b"k" * 50, b"v" * 500)]
    packed = own_batch(entries, 7, replace(COMPACTED, compression="gzip"), NOW_MS, leader_epoch=3)
    assert codec_of(packed.data[22], 2) is Codec.GZIP
    assert own_batch(entries, 7, TIMES_OF_ITS_OWN, NOW_MS, leader_epoch=3).append_time == NOW_MS


@pytest.mark.parametrize("config", [COMPACTED, TIMES_OF_ITS_OWN])
def test_a_batch_is_as_large_as_the_topic_takes_or_the_caller_says(config):
    small = replace(config, max_message_bytes=200)
    entries = [(b"k", b"v" * 300)]
    with pytest.raises(RefusedSet) as refused:
        own_batch(entries, 0, small, NOW_MS, leader_epoch=0, largest_bytes=100)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert own_batch(entries, 0, small, NOW_MS, leader_epoch=0, largest_bytes=1000).size_bytes > 300
