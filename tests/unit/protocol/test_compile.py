"""Compiled codecs: exact bytes, versions, tags, nulls, and every way in which bytes can be wrong."""

import random
import struct
import tracemalloc

import pytest

from horolog.protocol import compile as compile_module
from horolog.protocol.compile import (
    decode,
    decoder,
    decoder_in_steps,
    element_encoder,
    encode,
    encoder,
    flat_decoder,
    flat_encoder,
)
from horolog.protocol.compile_decode import MAX_OBJECTS, STEP
from horolog.protocol.compile_encode import Encoded
from horolog.protocol.error_finder import error_finder
from horolog.protocol.errors import DecodeError, EncodeError, ProtocolError
from horolog.protocol.flat import flat_of
from horolog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from horolog.protocol.messages.groups import JoinGroupRequest
from horolog.protocol.messages.headers import RequestHeader
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from horolog.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from horolog.protocol.primitives import COPY_BELOW_BYTES, Buffer
from horolog.protocol.wire import (
    Message,
    Struct,
    array,
    boolean,
    field,
    float64,
    int8,
    int32,
    string,
    uint16,
    uint32,
    uuid,
)
from tests.support.message_values import every_pair, random_message


@pytest.fixture(autouse=True, scope="module")
def written_anew():
    """Codecs are written when they are first asked for: here by these tests, whatever ran before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_module, "_decoders", {})
        patch.setattr(compile_module, "_encoders", {})
        patch.setattr(compile_module, "_stepping_decoders", {})
        patch.setattr(compile_module, "_element_encoders", {})
        yield


class Inner(Struct):
    number: int = field(int32)


class Mixed(Message, versions="0-3", flexible="2+"):
    inner: Inner | None = field(Inner, nullable="1+", default=None)
    flags: list[int] | None = field(array(int8), nullable="1+")
    ids: list[bytes] = field(array(uuid), "1+")
    names: list[str] = field(array(string))
    ratio: float = field(float64)
    port: int = field(uint16)
    count: int = field(uint32)
    sure: bool = field(boolean, "0-1", default=True)
    label: str = field(string, "3+", default="none", tag=1)
    part: Inner | None = field(Inner, "3+", tag=0)


class Group(Struct):
    names: list[str] = field(array(string))


class Nested(Message, versions="0"):
    groups: list[Group] = field(array(Group))


def produce(records: object = b"abc") -> ProduceRequest:
    part = PartitionProduceData(index=7, records=records)  # type: ignore[arg-type]
    topic = TopicProduceData(name="top", partition_data=[part])
    return ProduceRequest(acks=-1, timeout_ms=300, topic_data=[topic])


GOLDEN = [
    (produce(), 2, "ffff 0000012c 00000001 0003 746f70 00000001 00000007 00000003 616263"),
    (produce(), 3, "ffff ffff 0000012c 00000001 0003 746f70 00000001 00000007 00000003 616263"),
    (produce(), 9, "00 ffff 0000012c 02 04 746f70 02 00000007 04 616263 00 00 00"),
    (produce(None), 9, "00 ffff 0000012c 02 04 746f70 02 00000007 00 00 00 00"),
    (
        Mixed(
            inner=Inner(number=5),
            flags=[1, -1],
            ids=[b"\1" * 16],
            names=["a", ""],
            ratio=1.0,
            port=65535,
            count=1 << 31,
        ),
        1,
        "01 00000005 00000002 01ff 00000001" + "01" * 16 + "00000002 0001 61 0000 3ff0000000000000 ffff 80000000 01",
    ),
    (Mixed(flags=None), 2, "ff 00 01 01 0000000000000000 0000 00000000 00"),
    (
        Mixed(label="x", part=Inner(number=9)),
        3,
        "ff 01 01 01 0000000000000000 0000 00000000 02 00 05 00000009 00 01 02 02 78",
    ),
]


@pytest.mark.parametrize(("message", "version", "expected"), GOLDEN)
def test_exact_bytes(message: Message, version: int, expected: str) -> None:
    assert encode(message, version) == bytes.fromhex(expected)
    assert decode(type(message), version, bytes.fromhex(expected), to_the_end=True) == message


def test_the_client_id_of_a_flexible_header_keeps_its_old_form() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=1, client_id="me")
    assert encode(header, 2) == bytes.fromhex("0012 0003 00000001 0002 6d65 00")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("padding", [0, 10_000])
def test_decoding_takes_any_buffer_at_any_start(kind: type, padding: int) -> None:
    encoded = encode(produce(), 9)
    data = kind(b"\xff" * padding + encoded + b"\xff" * padding)
    message, end = decoder(ProduceRequest, 9)(data, padding)
    assert message == produce()
    assert end == padding + len(encoded)


def test_records_are_views_of_what_was_decoded() -> None:
    for data in (encode(produce(b"r" * 100_000), 9), encode(produce(b"r" * 100), 9)):
        records = decode(ProduceRequest, 9, data).topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        assert records.obj is data


def test_large_records_are_appended_uncopied() -> None:
    large = memoryview(bytes(COPY_BELOW_BYTES))
    small = b"small"
    partitions = [PartitionData(records=[large, large]), PartitionData(records=small)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts: list[Buffer] = []
    encoder(FetchResponse, 12)(response, parts)
    assert [part is large for part in parts] == [False, True, True, False]
    read = decode(FetchResponse, 12, b"".join(parts), to_the_end=True)
    assert [part.records for part in read.responses[0].partitions] == [bytes(large) * 2, small]


def test_fields_that_a_version_lacks_get_their_default_when_decoded() -> None:
    response = ProduceResponse(
        responses=[TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse()])]
    )
    read = decode(ProduceResponse, 0, encode(response, 0)).responses[0].partition_responses[0]
    assert (read.log_append_time_ms, read.record_errors, read.current_leader) == (-1, [], None)


def test_a_value_that_a_version_cannot_say_is_refused_unless_it_may_be_ignored() -> None:
    ignorable = ProduceResponse(throttle_time_ms=5)
    assert encode(ignorable, 0) == encode(ProduceResponse(), 0)
    with pytest.raises(EncodeError, match="transactional_id"):
        encode(ProduceRequest(transactional_id="t"), 2)
    with pytest.raises(EncodeError, match="node_endpoints"):
        encode(ProduceResponse(node_endpoints=[NodeEndpoint()]), 9)
    asked = ListOffsetsRequest(topics=[ListOffsetsTopic(partitions=[ListOffsetsPartition(max_num_offsets=2)])])
    with pytest.raises(EncodeError, match=r"topics\.partitions\.max_num_offsets"):
        encode(asked, 1)


def test_tagged_fields_at_their_default_are_not_sent() -> None:
    bare = PartitionProduceResponse()
    led = PartitionProduceResponse(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2))
    sizes = [
        len(encode(ProduceResponse(responses=[TopicProduceResponse(partition_responses=[each])]), 10))
        for each in (bare, led)
    ]
    assert sizes[1] - sizes[0] == 2 + 9  # number and size of the tag, its two int32 and their tag section


def test_unknown_tags_are_skipped() -> None:
    plain = bytes.fromhex("ff 01 01 01 0000000000000000 0000 00000000")
    tagged = plain + bytes.fromhex("03 01 02 02 78 07 03 aabbcc 8101 00")
    assert decode(Mixed, 3, tagged, to_the_end=True) == Mixed(label="x")
    assert decode(Mixed, 2, plain + bytes.fromhex("02 01 02 02 78 07 03 aabbcc"), to_the_end=True) == Mixed()


@pytest.mark.parametrize(
    ("size", "value"),
    [("03", "02 78 00"), ("01", "02 78"), ("ffffffff0f", "02 78"), ("02", "06 78")],
)
def test_a_tag_whose_value_does_not_fill_it_is_refused(size: str, value: str) -> None:
    plain = bytes.fromhex("ff 01 01 01 0000000000000000 0000 00000000 01 01")
    with pytest.raises(DecodeError):
        decode(Mixed, 3, plain + bytes.fromhex(size + value))


@pytest.mark.parametrize(
    ("version", "topics", "reason"),
    [
        (1, "7fffffff", "topics claims 2147483647"),
        (1, "00000002 0001 61", "topics claims 2"),
        (0, "ffffffff", "topics may not be null"),
        (0, "00000001 ffff", "topics.name may not be null"),
        (0, "00000001 7fff 61", "topics.name claims 32767"),
        (0, "00000001 0002 c328", "not UTF-8"),
        (9, "ffffffff0f", "topics claims 4294967294"),
        (9, "ffffffffffff01", "longer than 5"),
        (9, "02 00 00", "topics.name may not be null"),
        (9, "02 02 00", "end too early"),
        (4, "00000000", "end too early"),
        (9, "", "end too early"),
    ],
)
def test_what_is_wrong_is_told(version: int, topics: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=f"^MetadataRequest v{version}: .*{reason}"):
        decode(MetadataRequest, version, bytes.fromhex(topics))


def test_a_compact_string_longer_than_a_string_may_be_is_refused_both_ways() -> None:
    for length, fits in ((32767, True), (32768, False)):
        request = MetadataRequest(topics=[MetadataRequestTopic(name="n" * length)])
        if fits:
            assert decode(MetadataRequest, 9, encode(request, 9)) == request
            continue
        for version in (8, 9):
            with pytest.raises(EncodeError):
                encode(request, version)
        as_decoded = bytes.fromhex("02 818002") + b"n" * length + bytes.fromhex("00 01 00 00 00")
        with pytest.raises(DecodeError, match="claims 32768"):
            decode(MetadataRequest, 9, as_decoded)


def test_nothing_is_allocated_for_a_count_that_was_only_claimed() -> None:
    # 200 000 bytes are there, the list claims a hundred million elements of at least two bytes.
    data = bytes.fromhex("05f5e100") + bytes(200_000)
    decoder(MetadataRequest, 0)
    tracemalloc.start()
    with pytest.raises(DecodeError):
        decode(MetadataRequest, 0, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000


def test_one_message_makes_a_bounded_number_of_objects() -> None:
    empty_names = bytes(2 * (MAX_OBJECTS + 1))
    assert len(decode(MetadataRequest, 0, struct.pack(">i", MAX_OBJECTS) + empty_names).topics or ()) == MAX_OBJECTS
    with pytest.raises(DecodeError, match="topics has 250001 elements, too many"):
        decode(MetadataRequest, 0, struct.pack(">i", MAX_OBJECTS + 1) + empty_names)


def test_lists_inside_of_lists_count_against_the_same_bound() -> None:
    group = struct.pack(">i", MAX_OBJECTS // 4) + bytes(2 * (MAX_OBJECTS // 4))
    groups = struct.pack(">i", 4) + group * 4
    with pytest.raises(DecodeError, match="too many for one message"):
        decode(Nested, 0, groups)


def test_bytes_after_the_message_are_refused_on_request_only() -> None:
    data = encode(produce(), 9) + b"\0"
    assert decode(ProduceRequest, 9, data) == produce()
    with pytest.raises(DecodeError, match="1 bytes follow"):
        decode(ProduceRequest, 9, data, to_the_end=True)


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]), 1),
        (ProduceRequest(acks=1 << 15), 3),
        (ProduceRequest(timeout_ms="x"), 3),  # type: ignore[arg-type]
        (JoinGroupRequest(protocols=None), 0),  # type: ignore[arg-type]
    ],
)
def test_messages_that_cannot_be_encoded_raise_encode_error(message: Message, version: int) -> None:
    with pytest.raises(EncodeError, match=f"^{type(message).__name__} v{version}: "):
        encode(message, version)


@pytest.mark.parametrize("version", [-1, 14])
def test_unknown_versions_are_named(version: int) -> None:
    for make in (decoder, encoder):
        with pytest.raises(ProtocolError, match=f"ProduceRequest has no version {version}, only 0 to 13"):
            make(ProduceRequest, version)


def test_codecs_are_kept() -> None:
    assert decoder(ProduceRequest, 9) is decoder(ProduceRequest, 9)
    assert encoder(ProduceRequest, 9) is encoder(ProduceRequest, 9)


def test_every_message_of_every_version_survives_the_round_trip() -> None:
    chance = random.Random(20)
    for cls, version in every_pair():
        for message in (cls(), random_message(cls, version, chance), random_message(cls, version, chance)):
            encoded = encode(message, version)
            assert decode(cls, version, encoded, to_the_end=True) == message
            assert decode(cls, version, memoryview(encoded), to_the_end=True) == message


def test_every_truncation_of_every_message_is_refused() -> None:
    chance = random.Random(21)
    for cls, version in every_pair():
        encoded = encode(random_message(cls, version, chance), version)
        cuts = range(len(encoded)) if len(encoded) < 20 else [chance.randrange(len(encoded)) for _ in range(12)]
        for cut in cuts:
            with pytest.raises(DecodeError):
                decode(cls, version, encoded[:cut], to_the_end=True)


def test_a_flat_codec_gives_and_takes_structs_as_tuples_of_their_fields():
    names = [["a", "b"], []]
    data = encode(Nested(groups=[Group(names=each) for each in names]), 0)
    for _ in range(2):  # when it is written, and when it is there
        message, end = flat_decoder(Nested, 0)(memoryview(data), 0)
        assert (message, end) == (([(each,) for each in names],), len(data))
        parts: list[Buffer] = []
        flat_encoder(Nested, 0)(message, parts)
        assert b"".join(parts) == data


@pytest.mark.parametrize("codec", [flat_decoder, flat_encoder])
def test_a_flat_codec_is_for_versions_that_there_are(codec):
    with pytest.raises(ProtocolError):
        codec(Nested, 1)


# -- in steps, and arrays that are encoded before


def finished(steps):
    """What a decoder in steps returns, and how often it yielded."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize("flat", [False, True])
def test_a_decoder_in_steps_makes_the_same_as_one_in_one_go(flat: bool) -> None:
    rng = random.Random(1)
    for cls, version in every_pair():
        data = encode(random_message(cls, version, rng), version)
        whole = (flat_decoder if flat else decoder)(cls, version)(data, 0)
        stepped, _ = finished(decoder_in_steps(cls, version, flat=flat)(data, 0, MAX_OBJECTS, 1_000))
        assert stepped == whole


def test_a_long_list_is_decoded_in_many_steps() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{number}") for number in range(3_000)])
    (decoded, _), steps = finished(decoder_in_steps(MetadataRequest, 9, flat=False)(encode(request, 9), 0, 3_000, 0))
    assert decoded == request
    assert steps >= 3_000 // STEP
    with pytest.raises(DecodeError, match="too many for one message"):
        finished(decoder_in_steps(MetadataRequest, 9, flat=False)(encode(request, 9), 0, 2_999, 0))


def test_one_message_has_a_bounded_number_of_tags() -> None:
    empty, tags = b"\x01\x00\x00", b"\x03\x50\x00\x51\x00\x52\x00"
    decode_all = decoder(MetadataRequest, 12)
    assert decode_all(empty + b"\0", 0, 10, 0)
    assert decode_all(empty + tags, 0, 10, 3)
    with pytest.raises(DecodeError, match="3 tags, but the message may have only 2 more"):
        decode_all(empty + tags, 0, 10, 2)
    topic = bytes(16) + b"\x02a" + tags  # the bound is for all of its sections together
    with pytest.raises(DecodeError, match="3 tags, but the message may have only 2 more"):
        decode_all(b"\x03" + topic + topic + b"\0\0\0", 0, 10, 5)


@pytest.mark.parametrize("flat", [False, True])
def test_elements_that_were_encoded_before_stand_where_their_list_would(flat: bool) -> None:
    answer = FetchResponse(
        responses=[
            FetchableTopicResponse(topic=name, partitions=[PartitionData(partition_index=index) for index in range(3)])
            for name in ("a", "b")
        ]
    )
    given = flat_of(answer) if flat else answer
    whole = element_encoder(FetchResponse, 4, (), flat=flat)([given])
    assert whole == encode(answer, 4)
    topics = Encoded()
    for number, one in enumerate(answer.responses):
        partitions = Encoded()
        for each in one.partitions:
            each_given = [flat_of(each)] if flat else [each]
            partitions.add(1, element_encoder(FetchResponse, 4, ("responses", "partitions"), flat=flat)(each_given))
        assert len(partitions) == 3
        element = given[list(FetchResponse.FIELDS).index("responses")][number] if flat else one
        if flat:
            place = list(FetchableTopicResponse.FIELDS).index("partitions")
            element = (*element[:place], partitions, *element[place + 1 :])
        else:
            element.partitions = partitions
        topics.add(1, element_encoder(FetchResponse, 4, ("responses",), flat=flat)([element]))
    assert repr(topics) == f"<Encoded: 2 elements of {topics.size_bytes} bytes>"
    if flat:
        place = list(FetchResponse.FIELDS).index("responses")
        given = (*given[:place], topics, *given[place + 1 :])
    else:
        answer.responses = topics
    assert element_encoder(FetchResponse, 4, (), flat=flat)([given]) == whole


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_field_that_may_be_encoded_takes_either_form(version: int) -> None:
    rows = [MetadataResponsePartition(partition_index=index, error_code=index) for index in range(3)]
    plain = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=rows)])
    encoded = Encoded()
    encode_rows = element_encoder(MetadataResponse, version, ("topics", "partitions"), flat=False)
    for row in rows:
        encoded.add(1, encode_rows([row]), [row.error_code] if row.error_code else ())
    given = MetadataResponse(topics=[MetadataResponseTopic(name="t")])
    given.topics[0].partitions = encoded  # type: ignore[assignment]
    assert encode(given, version) == encode(plain, version)
    assert error_finder(MetadataResponse)(given) == error_finder(MetadataResponse)(plain) == [1, 2]


def test_an_element_that_cannot_be_encoded_is_refused_by_its_place() -> None:
    wrong = PartitionData(partition_index="x")
    with pytest.raises(EncodeError, match=r"FetchResponse v4\.responses\.partitions"):
        element_encoder(FetchResponse, 4, ("responses", "partitions"), flat=False)([wrong])
