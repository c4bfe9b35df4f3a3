"""Controls a test's broker from any language: a small HTTP server on loopback, requests and responses are JSON.

`commands` lists the requests, and `GET /` returns that list. A body is an object with the arguments of the method of the same
name in `EmbeddedBroker`. Errors are {"error": sentence}: 400 for an invalid request, 404 for an unknown path or topic,
417 for an expectation that was not met. One request per connection. Requests that a browser sends for a page are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, get_args, get_type_hints
from urllib.parse import unquote

from horolog.base.readable import format_time
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.testing.embedded import EmbeddedBroker
from horolog.testing.fault import Fault
from horolog.testing.faults import FaultKinds
from horolog.testing.json_server import HttpRequest, Text
from horolog.testing.matching import ExpectationFailed
from horolog.testing.reading import Seen
from horolog.testing.runs import AlreadyRunning, NotRunning

KINDS = tuple(name for name in vars(FaultKinds) if name != "arm" and not name.startswith("_"))
CHECKED: tuple[tuple[type, str, frozenset[str]], ...] = (
    (str, "text", frozenset({"topic", "client_id", "group", "name"})),
    (int, "a whole number", frozenset({"partition", "partitions", "count", "times", "offset"})),
    (bool, "true or false", frozenset({"after_work", "committed", "power_cut"})),
    (dict, "an object", frozenset({"configs", "headers"})),
)


class NotFound(Exception):
    """No such path or topic."""


class Control:
    """The commands of one broker; `on_stop` ends the process."""

    def __init__(self, broker: EmbeddedBroker, on_stop: Callable[[], None] = lambda: None) -> None:
        self._broker = broker
        self._on_stop = on_stop
        self._faults: dict[int, Fault] = {}
        self.commands: dict[str, Callable[[HttpRequest], Any]] = {
            "GET /": lambda _: {"broker": broker.bootstrap, "commands": list(self.commands)},
            "GET /clock": lambda _: self._clock(),
            "POST /clock/advance": _command(self._advance, lambda _: self._clock()),
            "POST /clock/set": _command(self._set, lambda _: self._clock()),
            "POST /clock/run": self._run,
            "GET /topics": lambda _: broker.topics(),
            "POST /topics": _command(self._create_topic, lambda _: broker.topics()),
            "GET /topics/NAME/offsets": self._offsets,
            "GET /topics/NAME/records": lambda asked: [as_json(one) for one in broker.records(asked.name)],
            "GET /topics/NAME/snapshot": self._snapshot,
            "POST /topics/NAME/restore": self._restore,
            "GET /faults": lambda _: [one.as_json() for one in broker.faults.armed],
            "POST /faults": self._arm,
            "DELETE /faults": self._clear,
            "GET /faults/NAME": lambda asked: self._fault(asked).as_json(),
            "DELETE /faults/NAME": self._end,
            "POST /expect": _command(broker.expect, _found),
            "POST /expect_none": _command(broker.expect_none),
            "POST /expect_committed": _command(broker.expect_committed),
            "POST /kill": _command(broker.kill),
            "POST /start": _command(broker.start),
            "POST /restart": _command(broker.restart),
            "POST /stop": self._stop,
        }

    def __repr__(self) -> str:
        return f"<Control of {self._broker!r}>"

    async def answer(self, asked: HttpRequest) -> tuple[HTTPStatus, Any]:
        """The response to a request, whatever it is."""
        if "origin" in asked.headers:
            return HTTPStatus.FORBIDDEN, {"error": "requests from web pages are refused"}
        try:
            command, asked = self._find(asked)
            result = command(asked)
            return HTTPStatus.OK, await result if isinstance(result, Awaitable) else result
        except ExpectationFailed as failed:
            records = [as_json(one) for one in failed.records]
            return HTTPStatus.EXPECTATION_FAILED, {"error": str(failed), "records": records}
        except NotFound as error:
            return HTTPStatus.NOT_FOUND, {"error": str(error)}
        except ClusterError as error:
            unknown = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return HTTPStatus.NOT_FOUND if unknown else HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except (ValueError, TypeError, NotRunning, AlreadyRunning, RefusedSet, StorageFault) as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}

    def _find(self, asked: HttpRequest) -> tuple[Callable[[HttpRequest], Any], HttpRequest]:
        parts = asked.path.strip("/").split("/")
        for line, command in self.commands.items():
            method, path = line.split(" ")
            words = path.strip("/").split("/")
            if method == asked.method and len(words) == len(parts):
                names = [part for word, part in zip(words, parts, strict=True) if word == "NAME"]
                if all(word in ("NAME", part) for word, part in zip(words, parts, strict=True)):
                    return command, asked._replace(name=unquote(names[0]) if names else "")
        raise NotFound(f"there is no {asked.method} {asked.path}; GET / lists the endpoints")

    # -- the clock

    def _clock(self) -> dict[str, Any]:
        now_ms = self._broker.clock.wall_ms()
        return {"ms": now_ms, "time": format_time(now_ms), "standing": self._broker.clock.is_standing}

    async def _advance(self, by: str) -> None:
        await self._broker.clock.advance(_text("by", by))

    async def _set(self, to: str | int) -> None:
        await self._broker.clock.set(to)

    def _run(self, _: HttpRequest) -> dict[str, Any]:
        self._broker.clock.run()
        return self._clock()

    # -- topics

    def _create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, object] | None = None) -> None:
        self._broker.create_topic(name, partitions, **dict(configs or {}))

    def _offsets(self, asked: HttpRequest) -> list[dict[str, int]]:
        count = self._broker.topics().get(asked.name, 1)  # a missing topic has no records
        found = [self._broker.offsets(asked.name, index) for index in range(count)]
        return [{"partition": index, "first": one.first, "end": one.end} for index, one in enumerate(found)]

    def _snapshot(self, asked: HttpRequest) -> Text:
        times = asked.query.get("times", "relative")
        return Text(self._broker.snapshot(asked.name, times=times, marks=asked.query.get("marks") == "1"))

    async def _restore(self, asked: HttpRequest) -> dict[str, int]:
        return {"restored": await self._broker.restore(asked.body.decode(), asked.name)}

    # -- faults

    def _arm(self, asked: HttpRequest) -> dict[str, Any]:
        arguments = asked.arguments()
        kind = arguments.pop("kind", None)
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
        fault: Fault = _called(getattr(self._broker.faults, kind), arguments)
        self._faults[fault.number] = fault
        return fault.as_json()

    def _clear(self, _: HttpRequest) -> list[Any]:
        self._broker.faults.clear()
        return []

    def _fault(self, asked: HttpRequest) -> Fault:
        found = self._faults.get(int(asked.name)) if asked.name.isdigit() else None
        if found is None:
            raise NotFound(f"there is no fault {asked.name}")
        return found

    def _end(self, asked: HttpRequest) -> dict[str, Any]:
        fault = self._fault(asked)
        fault.end()
        return fault.as_json()

    def _stop(self, _: HttpRequest) -> dict[str, Any]:
        self._on_stop()
        return {}


def _command(function: Callable[..., Any], shown: Callable[[Any], Any] = lambda _: {}) -> Callable[[HttpRequest], Any]:
    """A request whose body has the function's arguments; `shown` makes the response of the result."""

    async def run(asked: HttpRequest) -> Any:
        result = _called(function, asked.arguments())
        return shown(await result if isinstance(result, Awaitable) else result)

    return run


def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call with arguments by their names; raises ValueError or TypeError, which name the valid arguments."""
    named = inspect.signature(function).parameters.values()
    names = [name for one in named for name in _names(function, one)]
    if "where" in names:
        names.remove("where")
        if "where" in arguments:
            raise ValueError("`where` is a Python function: give a key, a value or headers instead")
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise ValueError(f"there is no argument {unknown[0]!r}; the arguments are {', '.join(names)}")
    required = [one.name for one in named if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    missing = [name for name in required if name not in arguments]
    if missing:
        raise ValueError(f"{missing[0]!r} is missing")
    for kind, told, checked in CHECKED:
        wrong = [one for one in checked & arguments.keys() if not isinstance(arguments[one], kind | None)]
        if wrong:
            raise TypeError(f"{wrong[0]!r}: expected {told}")
    return function(**arguments)


def _names(function: Callable[..., Any], parameter: inspect.Parameter) -> Iterable[str]:
    """The names of one parameter; `**` stands for those of its TypedDict."""
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
        return [parameter.name]
    (declared,) = get_args(get_type_hints(function)[parameter.name])
    names: dict[str, Any] = declared.__annotations__
    return names


def _found(records: list[Seen]) -> dict[str, Any]:
    return {"records": [as_json(one) for one in records]}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name!r}: expected text, such as '3 days'")
    return value


def as_json(record: Seen) -> dict[str, Any]:
    """A record in the form of `horolog consume -o json`."""
    found: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        **_bytes_as_json("key", record.key),
        **_bytes_as_json("value", record.value),
        "headers": [
            {"key": name.decode(errors="replace"), **_bytes_as_json("value", value)} for name, value in record.headers
        ],
    }
    if record.transaction is not None:
        found["transaction"] = record.transaction
    return found


def _bytes_as_json(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {f"{name}_base64": b64encode(data).decode()}


def refusal(_: HTTPStatus, why: str) -> dict[str, str]:
    """The body of an answer to a request that no command has read."""
    return {"error": why}
