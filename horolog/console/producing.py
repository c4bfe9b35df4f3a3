"""Produces a record: typed in a form, with a schema of the registry if one is named, or again from a record that a page shows."""

import json
import shlex
from typing import TYPE_CHECKING

from horolog.base.readable import counted, exact_time
from horolog.client.values.types import TopicPartition
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.schema_values import Typed, encoder_of, typed, words_of
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from horolog.client.admin.admin import Admin
    from horolog.client.values.types import ConsumerRecord

MOST = 2**62
VALUE_AT_MOST = 48 << 10


async def sending(visit: Visit) -> Form:
    topic = visit.text("topic")
    known = await visit.topic(topic)
    again = await _record(visit, topic)
    given = visit.given.get
    key = given("key", "" if again is None else _text(again.key))
    shown = Typed("") if again is None else await typed(visit, again.value)
    value, schema = given("value", shown.text), given("schema", shown.schema).strip()
    headers = given("headers", "" if again is None else _lines(again.headers))
    at = given("at", "" if again is None or again.timestamp_ms < 0 else exact_time(again.timestamp_ms, visit.zone))
    has_registry = visit.desk.options.registry is not None
    inputs = (
        Input("topic", "Topic", topic, is_fixed=True),
        Input("partition", "Partition", visit.text("partition"), "by the key"),
        Input("key", "Key", key, "none"),
        Input("value", "Value", value, "text or JSON; empty: none, which deletes the key", is_long=True),
        *([Input("schema", "Schema of the value", schema, f"none, {topic}-value, or an id")] if has_registry else []),
        Input("headers", "Headers, one on each line", headers, "name=value", is_long=True),
        Input("at", "Time", at, "now, 10:05, 3h"),
    )

    async def plan() -> Plan:
        partition = visit.number("partition", -1, 0) if visit.text("partition") else None
        if partition is not None and partition not in known.partitions:
            raise Refused(f"partition: topic {topic} has no partition {partition}", 404, "partition")
        text = value.replace("\r\n", "\n")
        if len(text.encode(errors="replace")) > VALUE_AT_MOST:
            raise Refused(f"value: at most {VALUE_AT_MOST >> 10} KiB are sent from here", field="value")
        time = visit.time("at") if at else None
        at_ms = None if time is None else time.ms
        pairs = _pairs(headers)
        content, encoded_as = await _encoded(visit, text, schema)

        async def send(admin: "Admin") -> None:
            from horolog.client.producing.producer import Producer

            async with Producer(admin.client) as producer:
                await producer.send_and_wait(
                    topic,
                    content,
                    key=key.encode() if key else None,
                    partition=partition,
                    headers=[(one.encode(), said.encode()) for one, said in pairs],
                    timestamp_ms=at_ms,
                )

        when = "now" if at_ms is None else exact_time(at_ms, visit.zone)
        does = (
            f"writes one record to topic {topic}, {'a partition by its key' if partition is None else f'partition {partition}'}",
            f"its value is {_said(text)}{encoded_as and f', encoded as {encoded_as}'}, its key is {key or 'none'}, its time is {when}",
        )
        bootstrap = visit.cluster.bootstrap
        words = ["produce", topic, "--format", "json"]
        words += ["-p", str(partition)] if partition is not None else []
        words += ["--timestamp", when] if at_ms is not None else []
        words += [word for one, said in pairs for word in ("-H", f"{one}={said}")]
        words += words_of(visit, schema)
        document = json.dumps({"key": key or None, "value": text or None}, ensure_ascii=False)
        line = f"printf '%s\\n' {shlex.quote(document)} | {command_line(bootstrap, *words)}"
        then = visit.link("/moment", topic=topic, at=at_ms if at_ms is not None else visit.now_ms)
        logged = f"{command_line(bootstrap, *words[:2])}: {counted(len(text.encode(errors='replace')), 'byte')}"
        return Plan(
            does, line, send, then, basis=encoded_as, logged=logged, settled={} if at_ms is None else {"at": when}
        )

    return Form("Produce a record", inputs, plan, "Write the record")


async def _encoded(visit: Visit, text: str, schema: str) -> tuple[bytes | None, str]:
    """The value's bytes, and the name of the schema that encoded them; empty if none is wanted."""
    content = text.encode() if text else None
    encoder = await encoder_of(visit, schema)
    if encoder is None:
        return content, ""
    from horolog.client.encoding import EncodingError

    try:
        return encoder.encode(content), encoder.name
    except EncodingError as error:
        raise Refused(f"value: {error}", field="value") from error


def _pairs(text: str) -> list[tuple[str, str]]:
    """The headers of lines NAME=VALUE."""
    found = []
    for line in filter(str.strip, text.splitlines()):
        name, separator, content = line.partition("=")
        if not separator or not name.strip():
            raise Refused(f"headers: {line!r}: expected name=value", field="headers")
        found.append((name.strip(), content))
    return found


def _lines(headers: "Sequence[tuple[bytes, bytes | None]]") -> str:
    lines = [f"{_text(name)}={_text(content)}" for name, content in headers]
    if any("\n" in line or "\r" in line for line in lines):
        raise Refused("this record has a header of several lines; it cannot be sent again from here", 409)
    return "\n".join(lines)


def _said(text: str) -> str:
    if not text:
        return "none, which deletes the key in a compacted topic"
    length = counted(len(text.encode(errors="replace")), "byte")
    try:
        json.loads(text)
    except ValueError:
        return f"text of {length}"
    return f"JSON of {length}"


def _text(content: bytes | None) -> str:
    """Bytes for a field. Raises Refused for others than text."""
    try:
        return "" if content is None else content.decode()
    except UnicodeDecodeError as error:
        raise Refused("this record is not text; only text can be sent again from here", 409) from error


async def _record(visit: Visit, topic: str) -> "ConsumerRecord | None":
    """The record of `again=PARTITION:OFFSET`, for the first form only: then the fields have it."""
    text = visit.text("again")
    if not text or "value" in visit.given:
        return None
    from horolog.client.moments.moment import Offsets, merge

    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal() and len(text) < 30):
        raise Refused("again: expected partition:offset")
    place = TopicPartition(topic, int(partition))
    between = {place: Offsets(int(offset), int(offset) + 1)}
    async with merge(visit.client, [place], None, None, in_order=False, between=between) as found:
        async for placed in found:
            if placed.record.offset == int(offset):
                return placed.record
    raise Refused(f"there is no record at offset {offset} of partition {partition}", 404)
