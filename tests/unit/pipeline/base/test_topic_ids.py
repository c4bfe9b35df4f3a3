"""The ids of topics as people read them."""

from horolog.pipeline.base.topic_ids import made_anew, show_topic_id


def test_an_id_is_shown_as_kafkas_tools_show_it():
    assert show_topic_id(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert show_topic_id(bytes(16)) is None


def test_a_topic_of_the_same_name_is_another_one():
    assert made_anew("orders", "a", "b") == (
        "topic orders was deleted and recreated: this read began with topic id a, the present topic has b"
    )
