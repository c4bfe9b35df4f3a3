"""The ids of topics, which distinguish a topic from a later one of the same name."""

from horolog.protocol.uuids import show_uuid


def show_topic_id(topic_id: bytes) -> str | None:
    """In the form that Kafka's tools show; None if the broker is too old for ids."""
    return show_uuid(topic_id) if any(topic_id) else None


def made_anew(topic: str, known: str | None, there: str | None) -> str:
    return (
        f"topic {topic} was deleted and recreated: this read began with topic id {known}, the present topic has {there}"
    )
