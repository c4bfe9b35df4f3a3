"""Which faults of brokers, stores and registries are transient, so that a running job waits for their end."""

import re

from horolog.client.decoding.registry import RegistryUnavailable
from horolog.client.values.errors import KafkaError
from horolog.protocol.errors import ErrorCode

_RETRIABLE = "|".join(code.name for code in ErrorCode if code.retriable)
_OF_A_BROKER = re.compile(rf"^[\w.]+: (?:\S+: )?((?:{_RETRIABLE}): .*)$", re.MULTILINE)
_NO_BROKER = re.compile(r"(no broker at \S+ within .*)$", re.MULTILINE)
_OF_A_STORE = re.compile(
    r"(\S+: (?:\S+ cannot be reached|the store answers (?:InternalError|RequestTimeout|ServiceUnavailable|SlowDown)))$",
    re.MULTILINE,
)


_NO_REGISTRY = re.compile(r"NoRegistry: (.*)$", re.MULTILINE)
_SCHEMA_CHANGED = re.compile(r"OptionError: (the columns are fixed): ", re.MULTILINE)
"""A registry had a newer schema when the step's readers were made than when its columns were asked for."""


def passing(error: Exception) -> str | None:
    """The fault, if it is transient; a task's own error is the last one in Spark's text."""
    if isinstance(error, KafkaError):
        return str(error) if error.retriable else None
    if isinstance(error.__cause__, RegistryUnavailable):
        return str(error)
    text = str(error)
    for kind in (_OF_A_BROKER, _NO_BROKER, _OF_A_STORE, _NO_REGISTRY, _SCHEMA_CHANGED):
        found = kind.findall(text)
        if found:
            return str(found[-1])
    return None
