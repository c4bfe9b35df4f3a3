"""The broker's log lines: for people (text) or for machines (one JSON object a line), with levels that may change while running.

Every line has the time (UTC, milliseconds), level, logger and message, and fields: those given as `extra=`, and those that the message
itself names, by the conventions of `_NAMED` or because a partition is among its arguments. A line stays one line whatever a
peer has put into it. Lines that peers can provoke again and again are cut to `MAX_REPEATS` of one kind in `WINDOW_S`; the next
line of that kind says how many were left out.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from horolog.broker.config.settings import Settings

FIELDS = (
    "worker",
    "topic",
    "partition",
    "group",
    "transactional_id",
    "peer",
    "listener",
    "client_id",
    "api",
    "left_out",
)
_NAMED = (
    ("%s-%s", ("topic", "partition")),
    ("group %s", ("group",)),
    ("topic %s", ("topic",)),
    ("closing the connection of %s on %s", ("peer", "listener")),
    ("a request of %s", ("peer",)),
)
"""The beginnings of messages whose first arguments say what they are about."""

MAX_REPEATS = 20
WINDOW_S = 10.0
MAX_KINDS = 1_000
PROVOKED_BY_PEERS = (
    "horolog.broker.network",
    "horolog.broker.handlers",
    "horolog.broker.groups",
    "horolog.broker.transactions",
)

_PACKAGE = "horolog."
"""Lines and settings name our loggers without it: `broker.network`."""
_OURS = ("broker", "client", "protocol")

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    9: "\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The subject of a line, apart from its message."""
    found: dict[str, object] = {}
    args = record.args if isinstance(record.args, tuple) else ()
    for start, names in _NAMED:
        if isinstance(record.msg, str) and record.msg.startswith(start):
            found |= dict(zip(names, args, strict=False))
            break
    for arg in args:
        if hasattr(arg, "topic") and hasattr(arg, "index"):
            found |= {"topic": arg.topic, "partition": arg.index}
            break
    given = record.__dict__
    return found | {name: given[name] for name in FIELDS if name in given}


def time_of(record: logging.LogRecord) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{moment}.{int(record.msecs):03d}Z"


class TextFormatter(logging.Formatter):
    """TIME LEVEL LOGGER: MESSAGE [name=value ...]; fields that the message names already are not said twice."""

    def format(self, record: logging.LogRecord) -> str:
        given = record.__dict__
        extra = " ".join(f"{name}={given[name]}" for name in FIELDS if name in given)
        line = f"{time_of(record)} {record.levelname} {record.name.removeprefix(_PACKAGE)}: {record.getMessage()}"
        line = one_line(f"{line} [{extra}]" if extra else line)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One object a line; an exception is a text inside of it."""

    def format(self, record: logging.LogRecord) -> str:
        import json

        line: dict[str, object] = {
            "time": time_of(record),
            "level": record.levelname,
            "logger": record.name.removeprefix(_PACKAGE),
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def one_line(text: str) -> str:
    return text.translate(_CONTROL)


class Repeats(logging.Filter):
    """Lets `MAX_REPEATS` lines of one kind pass in a window of time; a kind is the place in the program that logs it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}  # since when, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        if not may_be_provoked(record):
            return True
        kind = (record.name, str(record.msg))
        now_s = self._now()
        since_s, count = self._kinds.get(kind, (now_s, 0))
        if now_s - since_s >= WINDOW_S:
            if count > MAX_REPEATS:
                record.left_out = count - MAX_REPEATS
            since_s, count = now_s, 0
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        self._kinds[kind] = (since_s, count + 1)
        return count < MAX_REPEATS


def may_be_provoked(record: logging.LogRecord) -> bool:
    """Faults of the broker's own disk are logged every time."""
    return record.levelno < logging.WARNING or record.name.startswith(PROVOKED_BY_PEERS)


class Labels(logging.Filter):
    """Adds to every line which process writes it, where there are several."""

    def __init__(self, labels: dict[str, object]) -> None:
        super().__init__()
        self._labels = labels

    def filter(self, record: logging.LogRecord) -> bool:
        record.__dict__.update(self._labels)
        return True


class LogSetup:
    """Has the root logger write to a stream as the settings say, and follows them when they change."""

    def __init__(self, settings: Settings, stream: TextIO = sys.stderr, **labels: object) -> None:
        """Every line has the `labels`, which are among `FIELDS`."""
        self._handler = logging.StreamHandler(stream)
        self._handler.setFormatter(JsonFormatter() if settings.horolog_log_format == "json" else TextFormatter())
        self._handler.addFilter(Repeats())
        self._handler.addFilter(Labels(labels))
        self._named: set[str] = set()
        logging.getLogger().addHandler(self._handler)
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Set levels; loggers that are no longer named follow the others again."""
        logging.getLogger().setLevel(settings.horolog_log_level)
        levels = dict(_levels(settings))
        for name in self._named - levels.keys():
            logging.getLogger(name).setLevel(logging.NOTSET)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        self._named = set(levels)

    def close(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        for name in self._named:
            logging.getLogger(name).setLevel(logging.NOTSET)


def _levels(settings: Settings) -> Iterator[tuple[str, str]]:
    for text in settings.horolog_log_levels:
        name, _, level = text.rpartition(":")
        yield _PACKAGE + name if name.partition(".")[0] in _OURS else name, level
