"""The content of a classic consumer group's opaque metadata and assignments."""

from horolog.protocol.wire import Message, Struct, array, binary, field, int32, string


class TopicPartition(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """The two bytes in front of it are its version; newer ones are read as the newest known."""

    topics: list[str] = field(array(string))
    user_data: bytes | None = field(binary, nullable="0+")
    owned_partitions: list[TopicPartition] = field(array(TopicPartition), "1+", ignorable=True)
    generation_id: int = field(int32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(string, "3+", nullable="0+", ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """The two bytes in front of it are its version; newer ones are read as the newest known."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = field(
        array(ConsumerProtocolAssignmentTopicPartition)
    )
    user_data: bytes | None = field(binary, nullable="0+")
