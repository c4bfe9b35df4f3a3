"""Keeps the state of a folder's KRaft controller at the takeover, in the file `horolog-adopted` next to `horolog-cluster`.

If Kafka uses the folder again, its later changes can be distinguished from changes made here. The format is the one of
`horolog-cluster`, a checksum before each line:

    {"version": 1, "lines": <number of other lines>, "end_offset": ..., "epoch": ..., "written": "<the log's fingerprint>"}
    {"topic": "<name>", "id": "<topic id>", "partitions": <count>, "configs": {"<key>": "<value>"}}
    {"broker": "<node id, or empty for all>", "configs": {"<key>": "<value>"}}
    {"scram": "<user>", "mechanism": <1: SHA-256, 2: SHA-512>, "salt", "stored_key", "server_key": "<base64>", "iterations": <count>}
    {"acl": "<id>", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type"}
    {"quota": [["<entity type>", "<name, or null for the default>"]], "values": {"<key>": <number>}}

Its secrets are those of Kafka's own log, in the same clear form: protect the folder as before. Lines that cannot be trusted are
left out and reported.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from horolog.broker.adoption.kraft_state import KraftState, KraftTopic
from horolog.broker.log.storage import FileMissing, Storage
from horolog.broker.on_record.checked_lines import encode_line, read_lines
from horolog.protocol.messages.metadata_records import AccessControlEntryRecord, UserScramCredentialRecord
from horolog.protocol.uuids import parse_uuid, show_uuid

FILE_NAME = "horolog-adopted"
VERSION = 1
_ACL_FIELDS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)
_SECRETS = ("salt", "stored_key", "server_key")


@dataclass(slots=True)
class Adopted:
    """`state` at the takeover; `written` is the fingerprint of the log that it was read from."""

    state: KraftState = field(default_factory=KraftState)
    written: str = ""
    damages: list[str] = field(default_factory=list)


def load(storage: Storage, data_dir: str) -> Adopted | None:
    try:
        data = storage.read_all(f"{data_dir}/{FILE_NAME}")
    except FileMissing:
        return None
    return parse(bytes(data))


def save(storage: Storage, data_dir: str, state: KraftState, written: str) -> None:
    """Durable when it returns."""
    storage.write_atomically(f"{data_dir}/{FILE_NAME}", encode(state, written))


def encode(state: KraftState, written: str) -> bytes:
    lines = list(_contents(state))
    head = {
        "version": VERSION,
        "lines": len(lines),
        "end_offset": state.end_offset,
        "epoch": state.epoch,
        "written": written,
    }
    return "".join(encode_line(one) for one in (head, *lines)).encode("ascii")


def _contents(state: KraftState) -> Iterator[dict[str, Any]]:
    for topic in state.topics.values():
        yield {
            "topic": topic.name,
            "id": show_uuid(topic.id),
            "partitions": topic.partition_count,
            "configs": topic.configs,
        }
    for node, configs in state.broker_configs.items():
        yield {"broker": node, "configs": configs}
    for user in state.scram.values():
        secrets = {key: base64.b64encode(getattr(user, key)).decode("ascii") for key in _SECRETS}
        yield {"scram": user.name, "mechanism": user.mechanism, **secrets, "iterations": user.iterations}
    for acl in state.acls.values():
        yield {"acl": show_uuid(acl.id), **{key: getattr(acl, key) for key in _ACL_FIELDS}}
    for entity, values in state.quotas.items():
        yield {"quota": [list(part) for part in entity], "values": values}


def parse(data: bytes) -> Adopted:
    """The trusted contents of the file, and the faults of the rest."""
    adopted = Adopted()
    expected: int | None = None
    read = 0

    def take_head(content: dict[str, Any]) -> None:
        nonlocal expected
        expected = _read_head(content, adopted)

    def take_other(content: dict[str, Any], _: str) -> None:
        nonlocal read
        _read_line(content, adopted.state)
        read += 1

    for one in read_lines(data, take_head, take_other):
        adopted.damages.append(f"line {one.number} of {FILE_NAME}: {one.reason}")
    if expected != read:
        adopted.damages.append(
            f"{read} of {'an unknown number of' if expected is None else expected} lines are readable"
        )
    return adopted


def _read_head(content: dict[str, Any], adopted: Adopted) -> int:
    if int(content["version"]) > VERSION:
        raise ValueError(f"version {content['version']} is newer")
    adopted.state.end_offset = int(content["end_offset"])
    adopted.state.epoch = int(content["epoch"])
    adopted.written = str(content["written"])
    return int(content["lines"])


def _read_line(content: dict[str, Any], state: KraftState) -> None:
    if "topic" in content:
        topic = KraftTopic(str(content["topic"]), parse_uuid(content["id"]), configs=dict(content["configs"]))
        topic.replicas = dict.fromkeys(range(int(content["partitions"])), ())
        state.topics[topic.name] = topic
    elif "broker" in content:
        state.broker_configs[content["broker"]] = dict(content["configs"])
    elif "scram" in content:
        secrets = {key: base64.b64decode(content[key], validate=True) for key in _SECRETS}
        state.scram[content["scram"], content["mechanism"]] = UserScramCredentialRecord(
            name=content["scram"], mechanism=content["mechanism"], iterations=content["iterations"], **secrets
        )
    elif "acl" in content:
        acl_id = parse_uuid(content["acl"])
        state.acls[acl_id] = AccessControlEntryRecord(id=acl_id, **{key: content[key] for key in _ACL_FIELDS})
    elif "quota" in content:
        entity = tuple((str(kind), name) for kind, name in content["quota"])
        state.quotas[entity] = dict(content["values"])
