"""Parses the settings of topics that the operator gives: the output of tools, or JSON.

These forms are known, of several topics each:

    Configs for topic 'orders' are cleanup.policy=compact,delete,retention.ms=-1           kafka-configs.sh before 2.5
    Dynamic configs for topic orders are:                                                  kafka-configs.sh since; with --all: All configs ...
      retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1, ...}
    Topic: orders  PartitionCount: 1  ReplicationFactor: 1  Configs: retention.ms=-1       kafka-topics.sh
    {"orders": {"retention.ms": "-1"}}                                                     JSON; numbers and true, false are taken, too
    {"orders": [{"key": "retention.ms", "value": "-1", "source": "topic"}]}                horolog configs list -o json, under the topic's name
    [{"topic": "orders", "configs": {"retention.ms": "-1"}}]                               horolog topics describe -o json

A list of keys and values alone, as `horolog configs list -o json` prints it, names no topic: it is returned under the name "".
A value that the topic had not itself, but from its broker, is in `inherited`.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NO_NAME = ""

_OLD = re.compile(r"Configs for topics?(?: |:|: )'?([^'\s]+?)'? are ?(.*)")
_HEADING = re.compile(r"(?:Dynamic|All) configs for topic (\S+) are:")
_ENTRY = re.compile(r"\s+([a-z][a-z0-9.]*)=(.*) sensitive=(?:true|false) synonyms=\{(.*)\}\s*")
_TOPIC = re.compile(r"Topic: ?(\S+)\t.*\bConfigs: ?(.*)")
_TOPIC_PARTITION = re.compile(r"\s+Topic: ?\S+\tPartition: ?\d+\t.*")
_BEFORE_KEY = re.compile(r",(?=[a-z][a-z0-9.]*=)")
_OWN = "DYNAMIC_TOPIC_CONFIG:"


class GivenError(ValueError):
    """The text is not in one of the forms; the message says where."""


@dataclass(slots=True)
class GivenSettings:
    """The settings given for one topic."""

    own: dict[str, str] = field(default_factory=dict)
    inherited: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> dict[str, GivenSettings]:
    """The settings by topic. Raises GivenError."""
    if text.lstrip().startswith(("{", "[")):
        try:
            return _from_json(json.loads(text))
        except ValueError as error:
            if isinstance(error, GivenError):
                raise
            raise GivenError(f"it is not JSON: {error}") from error
    return _from_lines(text.splitlines())


def _from_lines(lines: Iterable[str]) -> dict[str, GivenSettings]:
    found: dict[str, GivenSettings] = {}
    current: GivenSettings | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or _TOPIC_PARTITION.fullmatch(line):
            continue
        if heading := _HEADING.fullmatch(line.strip()):
            current = _new(found, heading[1], number)
        elif whole := _OLD.fullmatch(line.strip()) or _TOPIC.fullmatch(line):
            current = None
            _new(found, whole[1], number).own.update(_pairs(whole[2], number))
        elif (entry := _ENTRY.fullmatch(line)) and current is not None:
            values = current.own if _OWN in entry[3] else current.inherited
            values[entry[1]] = entry[2]
        else:
            raise GivenError(f"line {number} is not part of a list of topic settings: {line.strip()[:80]!r}")
    return found


def _new(found: dict[str, GivenSettings], topic: str, number: int) -> GivenSettings:
    if topic in found:
        raise GivenError(f"line {number}: topic {topic} is there twice")
    found[topic] = GivenSettings()
    return found[topic]


def _pairs(text: str, number: int) -> dict[str, str]:
    """Parse `a=b,c=d`, where values may contain commas."""
    pairs: dict[str, str] = {}
    for pair in _BEFORE_KEY.split(text.strip()) if text.strip() else ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise GivenError(f"line {number}: {pair[:80]!r} is not KEY=VALUE")
        pairs[key.strip()] = value.strip()
    return pairs


def _from_json(content: Any) -> dict[str, GivenSettings]:
    if isinstance(content, dict):
        return {str(topic): _of_topic(str(topic), said) for topic, said in content.items()}
    if not isinstance(content, list):
        raise GivenError("neither an object nor a list")
    if content and all(isinstance(one, dict) and "topic" in one and "configs" in one for one in content):
        found: dict[str, GivenSettings] = {}
        for one in content:
            if one["topic"] in found:
                raise GivenError(f"topic {one['topic']} is there twice")
            found[str(one["topic"])] = _of_topic(str(one["topic"]), one["configs"])
        return found
    return {NO_NAME: _of_topic(NO_NAME, content)}


def _of_topic(topic: str, said: Any) -> GivenSettings:
    given = GivenSettings()
    if isinstance(said, dict):
        given.own = {str(key): _text(topic, key, value) for key, value in said.items()}
    elif isinstance(said, list) and all(isinstance(one, dict) and "key" in one and "value" in one for one in said):
        for one in said:
            values = given.own if one.get("source", "topic") == "topic" else given.inherited
            if one["value"] is not None:
                values[str(one["key"])] = _text(topic, one["key"], one["value"])
    else:
        raise GivenError(
            f"topic {topic}: settings are an object of keys and values, or a list of objects with key and value"
        )
    return given


def _text(topic: str, key: object, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise GivenError(f"topic {topic}: {key} has the value {value!r}, which is not text")
    return str(value)
