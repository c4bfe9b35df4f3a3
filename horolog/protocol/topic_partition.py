"""How a partition is named: by its topic and its number. The client's `TopicPartition` is one, too."""

TopicPartition = tuple[str, int]
