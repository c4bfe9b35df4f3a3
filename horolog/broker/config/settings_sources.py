"""Collects what was set: the file, the environment as Kafka's container image reads it, and flags, each winning over the one before."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from horolog.base import properties_file
from horolog.broker.config import listener_keys, protection
from horolog.broker.config.setting_types import SettingsError, Spec, nearest, render

# The environment variables of Kafka's scripts and images, and those that container platforms set for a service named kafka.
_NOT_SETTINGS = re.compile(
    r"KAFKA_(HOME|NAME|ENV_.*|OPTS|VERSION|DEBUG|CLUSTER_ID|KRAFT_CLUSTER_ID|ENABLE_KRAFT|CREATE_TOPICS_SEPARATOR|.*_OPTS|JMX_.*|LOG4J_.*|TOOLS_LOG4J_.*|SERVICE_.*|PORT_.*)"
)
_OTHER_NAMES = {"KAFKA_CREATE_TOPICS": "horolog.create.topics"}
"""Variables of Kafka's images that are no key of Kafka's, and the key that does the same here."""
_PLATFORM_PORT = re.compile(r"(tcp|udp|sctp)://.*")
"""KAFKA_PORT as container platforms set it for a service named kafka; a port of Kafka 0.10 is a number."""
_FAMILIES = ("listener.name.", "rsm.config.", "rlmm.config.")  # Kafka hands on whatever begins so
_FOR_DURABILITY = frozenset({"flush.messages", "flush.ms", "min.insync.replicas"})
"""Topic settings: given to a broker they would be ignored silently, and acknowledged records lost with them."""
_CLOSE = 0.87  # an environment variable as like a known name as this is taken for a misspelling of it


def gather(
    file: Path | None, environ: Mapping[str, str], flags: Mapping[str, str], specs: Mapping[str, Spec]
) -> tuple[dict[str, str], list[str]]:
    """The texts given for keys of the table, and warnings about all others.

    Raises SettingsError for an unknown key, and for one that asks for protection.
    """
    found: dict[str, str] = {}
    warnings: list[str] = []
    unused: dict[str, None] = {}
    variables, strangers = from_environment(environ, specs)
    for given in (read_file(file) if file is not None else {}, variables, flags):
        for key, value in given.items():
            spec = listener_keys.find(key, specs)
            is_default = spec is not None and value.strip() == render(spec.default)
            asked = None if is_default else protection.asked_by(key, value, in_table=spec is not None)
            if asked is not None:
                raise SettingsError(key, None, protection.refusal(asked))  # the value may be a secret
            if spec is not None:
                found[key] = value
            elif is_kafka_key(key):
                unused[key] = None
            elif is_topic_key(key):
                near = nearest(key, specs)
                warnings.append(
                    f"{key} is a topic setting and has no effect here"
                    + (f"; the broker setting is {near}" if near else "")
                )
            else:
                _refuse(key, value, specs)
    useless = protection.without_authorizer(found)
    if useless is not None:
        raise SettingsError(
            useless, found[useless], "it has no effect without an authorizer; set authorizer.class.name"
        )
    if unused:
        warnings.append(f"settings of Kafka that horolog does not use: {', '.join(unused)}")
    if strangers:
        warnings.append(f"ignored environment variables that match no setting: {', '.join(strangers)}")
    return found, warnings


def read_file(file: Path) -> dict[str, str]:
    try:
        return properties_file.parse(file.read_bytes())
    except (OSError, properties_file.PropertiesError) as error:
        raise SettingsError("--config", str(file), f"cannot be read: {error}") from error


def from_environment(environ: Mapping[str, str], specs: Mapping[str, Spec]) -> tuple[dict[str, str], list[str]]:
    """Settings by key, and the names that are none.

    The prefix KAFKA_ is not ours alone, so a name far from every key is passed over; one that is nearly a key is not.
    """
    given: dict[str, str] = {}
    strangers: list[str] = []
    for name, value in sorted(environ.items()):
        if not name.startswith("KAFKA_"):
            continue
        key = key_of_variable(name)
        if key == "port" and _PLATFORM_PORT.fullmatch(value):
            continue
        if key in specs or is_kafka_key(key) or is_topic_key(key) or protection.asked_by(key, value) is not None:
            given[key] = value
        elif _NOT_SETTINGS.fullmatch(name):
            continue
        elif nearest(key, (*specs, *kafka_keys()), _CLOSE):
            _refuse(key, value, specs)
        else:
            strangers.append(name)
    return given, strangers


def key_of_variable(name: str) -> str:
    """KAFKA_LOG_SEGMENT_BYTES is log.segment.bytes, and so is KAFKA_CFG_LOG_SEGMENT_BYTES, as one family of images has it.

    Two underscores stand for one, three for a dash.
    """
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    rest = name.removeprefix("KAFKA_").removeprefix("CFG_").lower()
    return re.sub("_+", lambda run: {1: ".", 2: "_", 3: "-"}.get(len(run[0]), run[0]), rest)


def kafka_keys() -> Collection[str]:
    """Every broker setting of Kafka 0.10.2, 3.9 and 4.3."""
    return _names_in("kafka_keys.txt")


@cache
def _names_in(file: str) -> frozenset[str]:
    text = Path(__file__).with_name(file).read_text("ascii")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def is_topic_key(key: str) -> bool:
    """Whether Kafka knows the key for topics, be it written as the broker's (`log.` before it): Kafka's brokers warn of such a key."""
    plain = key.removeprefix("log.")
    return plain not in _FOR_DURABILITY and plain in _names_in("kafka_topic_keys.txt")


def is_kafka_key(key: str) -> bool:
    return key.startswith(_FAMILIES) or key in kafka_keys()


def _refuse(key: str, value: str, specs: Mapping[str, Spec]) -> None:
    near = nearest(key, (*specs, *kafka_keys()))
    raise SettingsError(key, value, "is not a known setting" + (f"; did you mean {near}?" if near else ""))
