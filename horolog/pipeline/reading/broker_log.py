"""Asks a broker what partitions there are, where they begin and end, and where times are; from code that is not asynchronous."""

import asyncio
import re
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from horolog.client.values.types import TopicPartition
from horolog.client.wire.fetch import isolation_level
from horolog.client.wire.offsets import list_offsets
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.base.topic_ids import show_topic_id
from horolog.pipeline.options.options import ReadOptions, Selection
from horolog.pipeline.options.reaching import client_of, reach
from horolog.pipeline.reading.sampling import Sample, samples
from horolog.protocol.errors import ErrorCode

T = TypeVar("T")


class BrokerLog:
    """A client with an event loop of its own; to be closed."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.bootstrap is not None
        self._options = options
        self._runner = asyncio.Runner()
        self.client = client_of(options.bootstrap, options)
        self._reached = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.run(self.client.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a coroutine and run the loop until its request is on its way."""

        async def begin() -> "asyncio.Task[T]":
            task = asyncio.create_task(work)
            for _ in range(8):  # more turns of the loop than a request takes until it is written
                await asyncio.sleep(0)
            return task

        return self.run(begin())

    def finish(self, task: "asyncio.Task[T]") -> T:
        async def wait() -> T:
            return await task

        return self.run(wait())

    def forget(self, task: "asyncio.Task[Any]") -> None:
        """Cancel it, and ignore its outcome."""

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.run(end())

    def partitions(self, selection: Selection) -> list[TopicPartition]:
        """The partitions that the options select, all of which there must be."""
        if not self._reached:
            self.run(reach(self.client, self._options))
            self._reached = True
        if selection.partitions:
            found = self._of_topics({one.topic for one in selection.partitions})
            missing = [str(one) for one in selection.partitions if one not in found]
            if missing:
                raise OptionError(f"assign: the cluster has no {', '.join(missing)}")
            return sorted(selection.partitions)
        if selection.pattern is None:
            return self._of_topics(set(selection.topics))
        pattern = re.compile(selection.pattern)
        topics = self.run(self.client.metadata(None)).topics.values()
        return self._of_topics({one.name for one in topics if not one.internal and pattern.fullmatch(one.name)})

    def _of_topics(self, topics: set[str]) -> list[TopicPartition]:
        view = self.run(self.client.metadata(sorted(topics))) if topics else self.client.view
        missing = sorted(topic for topic in topics if topic not in view.topics)
        if missing:
            raise OptionError(f"the cluster has no topic {', '.join(missing)}")
        refused = sorted(
            topic for topic in topics if view.topics[topic].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        if refused:
            raise OptionError(f"not authorized for topic {', '.join(refused)} (TOPIC_AUTHORIZATION_FAILED)")
        return sorted(TopicPartition(topic, number) for topic in topics for number in view.topics[topic].numbers)

    def topic_id(self, topic: str) -> str | None:
        """The id of a topic in the last metadata; None if the broker is too old for ids."""
        self.run(self.client.topic(topic))
        return show_topic_id(self.client.view.topics[topic].id)

    def are_there(self, topics: Iterable[str]) -> set[str]:
        """Which of the topics exist, by a new request."""
        names = sorted(set(topics))
        view = self.run(self.client.metadata(names)) if names else self.client.view
        return {topic for topic in names if topic in view.topics}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of topics in the last metadata, without topics that have none."""
        found = {topic: self.topic_id(topic) for topic in sorted(set(topics))}
        return {topic: known for topic, known in found.items() if known is not None}

    def ends(self, partitions: Iterable[TopicPartition], which: int) -> dict[TopicPartition, int]:
        found = self.at_times(dict.fromkeys(partitions, which))
        return {partition: offset or 0 for partition, offset in found.items()}

    def samples(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, Sample]:
        """What lies at each position, if anything does."""
        return self.run(samples(self.client, positions, self._options.isolation)) if positions else {}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if not times:
            return {}
        level = isolation_level(self._options.isolation)
        found = self.run(list_offsets(self.client, times, isolation=level))
        return {partition: None if answer is None else answer.offset for partition, answer in found.items()}
