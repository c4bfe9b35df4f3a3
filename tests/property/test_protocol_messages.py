"""Whatever a message holds comes back, and whatever arrives is a message or a DecodeError."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, decoder, encode, flat_decoder, flat_encoder
from horolog.protocol.errors import DecodeError
from horolog.protocol.wire import Message, Struct
from tests.support.message_values import every_pair, random_message

PAIRS = list(every_pair())

FLAT = [
    (API[key], version)
    for key, handler in HANDLERS.items()
    if handler.flat
    for version in range(handler.min_version, handler.max_version + 1)
]

pairs = st.sampled_from(PAIRS)
seeds = st.integers(0, 1 << 32)
# Values that lengths, counts, tags and nulls turn on.
INTERESTING = (0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The same bytes with one to four mistakes."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(out) + 1)
        end = at + chance.choice((0, 1, 1, 1, 2, 4, 8))
        filled = chance.choice(
            (b"", chance.randbytes(end - at), bytes([chance.choice(INTERESTING)]) * chance.choice((1, 2, 4, 5)))
        )
        out[at:end] = filled
    return bytes(out)


def survives_or_is_refused(cls: type[Message], version: int, data: bytes) -> None:
    try:
        message = decode(cls, version, data)
    except DecodeError:
        return
    # What was read can be said again, in one way: the first writing may drop unknown tags and odd varints, the second nothing.
    written = encode(message, version)
    assert encode(decode(cls, version, written, to_the_end=True), version) == written


@given(pairs, seeds)
def test_messages_come_back_as_they_were(pair: tuple[type[Message], int], seed: int) -> None:
    cls, version = pair
    message = random_message(cls, version, random.Random(seed))
    encoded = encode(message, version)
    assert decode(cls, version, encoded, to_the_end=True) == message
    assert encode(decode(cls, version, encoded), version) == encoded


@given(pairs, seeds)
def test_mistakes_in_bytes_are_decode_errors(pair: tuple[type[Message], int], seed: int) -> None:
    cls, version = pair
    chance = random.Random(seed)
    encoded = encode(random_message(cls, version, chance), version)
    for _ in range(5):
        survives_or_is_refused(cls, version, mutated(encoded, chance))


def test_mistakes_in_every_message_of_every_version_are_decode_errors() -> None:
    chance = random.Random(22)
    for cls, version in PAIRS:
        encoded = encode(random_message(cls, version, chance), version)
        for _ in range(12):
            survives_or_is_refused(cls, version, mutated(encoded, chance))


@given(pairs, st.binary(max_size=200))
def test_garbage_is_a_message_or_a_decode_error(pair: tuple[type[Message], int], data: bytes) -> None:
    survives_or_is_refused(*pair, data)


def flattened(value: object) -> object:
    """A message as the tuple of its fields, in the order of their declaration."""
    if isinstance(value, list):
        return [flattened(each) for each in value]
    return tuple(flattened(getattr(value, name)) for name in value.FIELDS) if isinstance(value, Struct) else value


def outcome(read: Any, data: bytes) -> object:
    """What a decoder makes of bytes, or says of them."""
    try:
        message, end = read(memoryview(data), 0)
    except DecodeError as error:
        return str(error)
    return flattened(message), end


@given(st.sampled_from(FLAT), seeds)
def test_flat_messages_are_the_others_as_tuples(served: tuple[Any, int], seed: int) -> None:
    api, version = served
    chance = random.Random(seed)
    encoded = encode(random_message(api.request, version, chance), version)
    for data in (encoded, *(mutated(encoded, chance) for _ in range(5))):
        assert outcome(flat_decoder(api.request, version), data) == outcome(decoder(api.request, version), data)
    answer = random_message(api.response, version, chance)
    parts: list[Any] = []
    flat_encoder(api.response, version)(flattened(answer), parts)
    assert b"".join(parts) == encode(answer, version)
