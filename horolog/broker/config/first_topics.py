"""The topics that a setting asks for at the start, in the form of KAFKA_CREATE_TOPICS; pure.

topics := topic (("," | white space) topic)*
topic  := NAME [":" PARTITIONS [":" COPIES [":" ("compact" | "delete")]]]
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.base.topic_names import wrong_with

POLICIES = ("compact", "delete")
DEFAULT_PARTITIONS = -1
_SEPARATORS = re.compile(r"[,\s]+")


class FirstTopic(NamedTuple):
    name: str
    partitions: int = DEFAULT_PARTITIONS
    copies: int = 1
    cleanup_policy: str | None = None


def parse(text: str) -> list[FirstTopic]:
    """Raises ValueError, whose message names the fault."""
    topics = list(_topics(text))
    names = [topic.name for topic in topics]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is named twice")
    return topics


def wrong_with_topics(text: str) -> str | None:
    """For a row of the settings table."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return None


def _topics(text: str) -> Iterator[FirstTopic]:
    for word in filter(None, _SEPARATORS.split(text)):
        name, *rest = word.split(":")
        wrong = wrong_with(name)
        if wrong is not None:
            raise ValueError(wrong)
        if len(rest) > 3:
            raise ValueError(f"{word}: expected NAME:PARTITIONS:COPIES:POLICY")
        if not all(
            number.isascii() and number.isdigit() and len(number) < 10 and int(number) > 0 for number in rest[:2]
        ):
            raise ValueError(f"{word}: partitions and copies are numbers from 1")
        policy = rest[2] if len(rest) == 3 else None
        if policy is not None and policy not in POLICIES:
            raise ValueError(f"{word}: the cleanup policy is one of {', '.join(POLICIES)}")
        partitions, copies = [int(number) for number in rest[:2]] + [DEFAULT_PARTITIONS, 1][len(rest[:2]) :]
        yield FirstTopic(name, partitions, copies, policy)
