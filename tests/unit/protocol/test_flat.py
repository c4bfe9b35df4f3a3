"""Structs and the tuples that stand for them: what a flat codec decodes is what the other decodes, said otherwise."""

import random

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode, flat_decoder
from horolog.protocol.flat import (
    element_of,
    flat_of,
    getter,
    struct_of,
    value_of,
    values_of,
    with_structs,
    with_value,
)
from horolog.protocol.messages.offsets import OffsetCommitResponse, OffsetCommitResponseTopic
from horolog.protocol.messages.produce import ProduceResponse
from tests.support.message_values import random_message

MESSAGES = [
    each
    for key, handler in HANDLERS.items()
    if handler.flat
    for each in (API[key].request, API[key].response)
    if each is not ProduceResponse  # which tells of other leaders by tags, that nobody here reads
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: each.__name__)
def test_a_struct_and_its_fields_say_the_same(message):
    version = message.VERSIONS.last
    for seed in range(10):
        data = encode(random_message(message, version, random.Random(seed)), version)
        struct = decode(message, version, data)
        flat, _ = flat_decoder(message, version)(data, 0)
        assert flat_of(struct) == flat
        assert struct_of(message, flat) == struct


TOPICS = [OffsetCommitResponseTopic(name=name) for name in ("t", "u")]
RESPONSE = OffsetCommitResponse(throttle_time_ms=5, topics=TOPICS)


@pytest.mark.parametrize("is_flat", [False, True])
def test_both_are_read_and_changed_alike(is_flat):
    form = flat_of if is_flat else lambda struct: struct
    response, topics = form(RESPONSE), [form(one) for one in TOPICS]
    assert value_of(OffsetCommitResponse, response, "throttle_time_ms") == 5
    assert getter(OffsetCommitResponse, "topics", flat=is_flat)(response) == topics
    assert values_of(OffsetCommitResponse, response) == [5, topics]
    changed = with_value(OffsetCommitResponse, response, "topics", topics[1:])
    assert changed == form(OffsetCommitResponse(throttle_time_ms=5, topics=TOPICS[1:]))
    assert response == form(RESPONSE), "the original is as it was"
    assert element_of(OffsetCommitResponse, "topics") is OffsetCommitResponseTopic
    echoed = with_structs(lambda struct: OffsetCommitResponse(topics=struct.topics), OffsetCommitResponse, response)
    assert echoed == form(OffsetCommitResponse(topics=TOPICS))


def test_a_tuple_of_another_length_is_none_of_its_structs():
    assert flat_of(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t")])) == (0, [("t", bytes(16), [])])
    with pytest.raises(ValueError, match="zip"):
        struct_of(OffsetCommitResponse, (0, [], 1))
