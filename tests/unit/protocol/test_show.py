"""Messages as people read them."""

from horolog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from horolog.protocol.messages.offsets import OffsetFetchRequest
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.sasl import SaslAuthenticateRequest
from horolog.protocol.show import ITEMS_SHOWN, show, show_lines
from horolog.protocol.uuids import show_uuid

TOPICS = [MetadataResponseTopic(error_code=3, name="a", topic_id=bytes(range(16)), topic_authorized_operations=0)]


def test_one_line_leaves_out_defaults_and_names_errors_and_ids() -> None:
    assert show(MetadataResponse(topics=TOPICS)) == (
        "MetadataResponse(topics=[MetadataResponseTopic(error_code=3 UNKNOWN_TOPIC_OR_PARTITION, name='a', "
        "topic_id=AAECAwQFBgcICQoLDA0ODw, topic_authorized_operations=0)])"
    )


def test_everything_can_be_asked_for() -> None:
    shown = show(MetadataResponse(), everything=True)
    assert "throttle_time_ms=0" in shown
    assert "cluster_id=null" in shown
    assert "error_code=0 NONE" in shown


def test_an_error_code_that_nobody_knows_is_still_shown() -> None:
    assert "error_code=9999 unknown" in show(MetadataResponse(error_code=9999))


def test_lines_are_indented_by_depth() -> None:
    assert show_lines(MetadataResponse(controller_id=4, topics=TOPICS)) == [
        "controller_id: 4",
        "topics:",
        "  - error_code: 3 UNKNOWN_TOPIC_OR_PARTITION",
        "    name: 'a'",
        "    topic_id: AAECAwQFBgcICQoLDA0ODw",
        "    topic_authorized_operations: 0",
    ]


def test_large_things_are_cut_and_say_how_large_they_are() -> None:
    records = PartitionProduceData(records=[b"x" * 500, b"y" * 500])
    produced = ProduceRequest(topic_data=[TopicProduceData(name="n" * 1000, partition_data=[records] * 100)])
    assert "<1000 bytes of records>" in show(produced)
    assert "... 1000 in all" in show(produced)
    assert f"{ITEMS_SHOWN + 1}" not in "".join(show_lines(produced)).replace("100", "")
    assert "- ... 100 in all" in "\n".join(show_lines(produced))
    assert show(SaslAuthenticateRequest(auth_bytes=b"\xab" * 1000)).endswith("ab... 1000 in all)")
    assert len(show(produced)) < 3000


def test_structs_at_their_defaults_and_nulls_are_shown_as_such() -> None:
    assert show_lines(ProduceRequest(topic_data=[TopicProduceData()])) == ["topic_data:", "  - (defaults)"]
    assert "topics=null" in show(OffsetFetchRequest(topics=None))


def test_ids_are_shown_as_kafka_shows_them() -> None:
    assert show_uuid(bytes(16)) == "A" * 22
