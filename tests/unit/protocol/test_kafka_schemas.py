"""Our declarations beside the schemas in real kafka-clients jars: every API, version and field, both ways.

`HOROLOG_KAFKA_JARS` names a folder that holds the jars, at any depth. Releases are laid over each other: what an older one has
and a newer one dropped has to be there as well.
"""

import json
import os
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages import consumer_protocol, headers, metadata_records
from horolog.protocol.wire import NO_UUID, NONE, ArrayType, Field, Message, Struct, StructType, versions_of

BESIDE_APIS = (headers, consumer_protocol, metadata_records)
FOLDER = os.environ.get("HOROLOG_KAFKA_JARS", "")
JARS = sorted(Path(FOLDER).glob("**/kafka-clients-*.jar")) if FOLDER else []

# An older release called API 74 by another name, with other names inside; on the wire they are the same.
RENAMED = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
    "client_metrics_resources": "config_resources",
}
# APIs that are known by name alone.
NOT_SPOKEN = set(map(int, ApiKey)) - set(map(int, API))
# One release more is needed to vouch for versions which the others dropped or did not have yet.
ERAS = ("3.9", "4.")

Shape = tuple[str, str, bool, int | None, Any, bool]  # path, type, nullable, tag, default, may be ignored where absent

pytestmark = [
    pytest.mark.kafka_jars,
    pytest.mark.skipif(not JARS, reason="HOROLOG_KAFKA_JARS names no folder with kafka-clients jars"),
]


def snake(name: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)
    return re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", parted).lower()


def release_of(jar: Path) -> str:
    return jar.stem.removeprefix("kafka-clients-")


def schema_texts(jar: Path, folder: str) -> list[str]:
    with zipfile.ZipFile(jar) as archive:
        return [
            archive.read(name).decode() for name in archive.namelist() if re.match(rf"common/{folder}/\w+\.json$", name)
        ]


@cache
def schemas(jar: Path) -> dict[str, dict[str, Any]]:
    """The messages in a jar that a client or an admin tool may meet, by our names."""
    texts = schema_texts(jar, "message")
    metadata = jar.with_name(f"kafka-metadata-{release_of(jar)}.jar")
    if metadata.exists():
        texts += schema_texts(metadata, "metadata")
    # The schemas carry comments, and no text in them has two slashes.
    specs = [json.loads(re.sub(r"(?m)(^|\s)//.*$", "", text)) for text in texts]
    served = {spec["apiKey"] for spec in specs if "broker" in spec.get("listeners", ())} - NOT_SPOKEN
    served.add(ApiKey.BROKER_HEARTBEAT)  # in Kafka to controllers alone
    early = {spec["apiKey"] for spec in specs if is_early(spec)}
    specs = [spec for spec in specs if spec.get("apiKey") not in early or spec["type"] not in {"request", "response"}]
    others = {each.__name__ for module in BESIDE_APIS for each in vars(module).values() if isinstance(each, type)}
    return {
        RENAMED.get(spec["name"], spec["name"]): spec
        for spec in specs
        if (spec.get("apiKey") in served and spec["type"] != "metadata") or spec["name"] in others
    }


def is_early(spec: dict[str, Any]) -> bool:
    """Whether the API was not stable in that release in any version: it may be another one since."""
    return bool(spec.get("latestVersionUnstable")) and spec["validVersions"] == "0"


def ours() -> dict[str, type[Message]]:
    found = {cls.__name__: cls for api in API.values() for cls in (api.request, api.response)}
    for module in BESIDE_APIS:
        found |= {
            name: each for name, each in vars(module).items() if isinstance(each, type) and issubclass(each, Message)
        }
    found.pop("Message")
    return found


def version_range(spec: dict[str, Any]) -> range:
    versions = versions_of(spec["validVersions"])
    return range(versions.first, versions.last + 1)


def their_shapes(spec: dict[str, Any], version: int) -> Iterator[Shape]:
    commons = {each["name"]: each["fields"] for each in spec.get("commonStructs", ())}
    valid = versions_of(spec["validVersions"])

    def walk(fields: list[dict[str, Any]], path: str) -> Iterator[Shape]:
        for each in fields:
            name = snake(each["name"])
            if path == "config_resources." and name == "name":
                name = "resource_name"
            here = path + RENAMED.get(name, name)
            present = version in versions_of(each.get("versions", each.get("taggedVersions")))
            kind, inner = their_type(each["type"])
            if present:
                nullable = version in versions_of(each.get("nullableVersions", "none"))
                yield (
                    here,
                    kind,
                    nullable,
                    int(each["tag"]) if "tag" in each else None,
                    their_default(each, kind, valid),
                    False,
                )
                yield from walk(each.get("fields") or commons.get(inner, []), here + ".")
            else:
                yield here, "absent", False, None, None, bool(each.get("ignorable"))

    return walk(spec["fields"], "")


def their_type(name: str) -> tuple[str, str]:
    """The type in our words, and the name of the struct inside."""
    inner = name.removeprefix("[]")
    plain = inner if inner[0].islower() else "struct"
    return ("[]" if inner != name else "") + plain, inner


def their_default(spec: dict[str, Any], kind: str, valid: Any) -> Any:
    """Kafka's default, with the exceptions that `protocol.wire` states."""
    given = spec.get("default")
    null = given == "null" or ("default" in spec and given is None)
    if kind.startswith("[]"):
        return None if null else []
    if kind == "struct":
        return None if null or "tag" in spec else {}
    if kind in {"string", "bytes", "records"}:
        present, nullable = versions_of(spec.get("versions", "0+")), versions_of(spec.get("nullableVersions", "none"))
        first = max(present.first, valid.first)
        always = nullable != NONE and nullable.first <= first and nullable.last >= min(present.last, valid.last)
        return (
            None if null or kind == "records" or (always and not given) else given or ("" if kind == "string" else b"")
        )
    if kind == "bool":
        return str(given).lower() == "true"
    return NO_UUID if kind == "uuid" else int(str(given or 0), 0)


def our_shapes(cls: type[Struct], version: int, path: str = "") -> Iterator[Shape]:
    for name, declared in cls.FIELDS.items():
        here = path + name
        if version not in declared.versions:
            yield here, "absent", False, None, None, declared.ignorable
            continue
        wire_type = declared.type
        element = wire_type.element if isinstance(wire_type, ArrayType) else wire_type
        kind = "struct" if isinstance(element, StructType) else element.name
        array = "[]" if isinstance(wire_type, ArrayType) else ""
        yield here, array + kind, version in declared.nullable, declared.tag, our_default(declared), False
        if isinstance(element, StructType):
            yield from our_shapes(element.struct, version, here + ".")


def our_default(declared: Field) -> Any:
    default = declared.make_default()
    return {} if isinstance(default, Struct) else default


def on_the_wire(shapes: Iterator[Shape]) -> list[Shape]:
    return [shape for shape in shapes if shape[1] != "absent"]


def ignored(shapes: Iterator[Shape]) -> dict[str, bool]:
    return {path: may_be for path, kind, _, _, _, may_be in shapes if kind == "absent"}


@pytest.mark.parametrize("jar", JARS, ids=release_of)
def test_every_version_of_every_message_is_there(jar: Path) -> None:
    have = ours()
    missing = [
        f"{name} v{version}"
        for name, spec in schemas(jar).items()
        for version in version_range(spec)
        if name not in have or version not in have[name].VERSIONS
    ]
    assert missing == []


@pytest.mark.parametrize("jar", JARS, ids=release_of)
def test_every_field_is_the_same(jar: Path) -> None:
    wrong = []
    for name, spec in schemas(jar).items():
        cls = ours().get(name)
        for version in version_range(spec) if cls else ():
            theirs, mine = on_the_wire(their_shapes(spec, version)), on_the_wire(our_shapes(cls, version))
            if theirs != mine:
                difference = set(theirs) ^ set(mine) if all(map(hashable, theirs + mine)) else (theirs, mine)
                wrong.append(f"{name} v{version}: {difference}")
    assert wrong == []


def hashable(shape: Shape) -> bool:
    return not isinstance(shape[4], list | dict)


@pytest.mark.parametrize("jar", JARS, ids=release_of)
def test_flexible_versions_and_ignorable_fields_are_the_same(jar: Path) -> None:
    wrong = []
    for name, spec in schemas(jar).items():
        cls = ours().get(name)
        for version in version_range(spec) if cls else ():
            if (version in versions_of(spec["flexibleVersions"])) != (version in cls.FLEXIBLE):
                wrong.append(f"{name} v{version} flexible")
            mine = ignored(our_shapes(cls, version))
            wrong += [
                f"{name} v{version} {path} ignorable"
                for path, may_be in ignored(their_shapes(spec, version)).items()
                if mine.get(path, may_be) != may_be
            ]
    assert wrong == []


def test_nothing_is_declared_that_no_release_has() -> None:
    releases = [release_of(jar) for jar in JARS]
    lacking = [era for era in ERAS if not any(release.startswith(era) for release in releases)]
    if lacking:
        pytest.skip(f"needs releases {lacking} beside {releases}: each of them alone lacks versions of the other")
    known = {(name, version) for jar in JARS for name, spec in schemas(jar).items() for version in version_range(spec)}
    declared = {(name, v) for name, cls in ours().items() for v in range(cls.VERSIONS.first, cls.VERSIONS.last + 1)}
    assert declared - known == set()
