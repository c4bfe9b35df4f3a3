"""Records are decoded and chosen as a user asks for it: by registries, schema files and expressions, on a running broker."""

import io
import json

import fastavro
import pytest

from tests.support.names import unique
from tests.support.registry_server import RegistryThread

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
TIME_MS = 1_700_000_000_000


@pytest.fixture
def run(horolog, session_broker, monkeypatch):
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    return lambda *words: horolog(*words, "--bootstrap", session_broker.address)


@pytest.fixture
def produced(run, tmp_path):
    """Makes a topic of these records."""

    def produce(*records) -> str:
        topic = unique("decoded")
        assert run("topics", "create", topic, "--config", "retention.ms=-1").code == 0  # its times are old
        path = tmp_path / "records"
        path.write_text("".join(json.dumps({"timestamp": TIME_MS} | record) + "\n" for record in records))
        ended = run("produce", topic, path, "--format", "json")
        assert ended.code == 0, ended
        return topic

    return produce


def avro(number) -> str:
    """A record of the schema 7 in base64."""
    from base64 import b64encode
    from decimal import Decimal

    out = io.BytesIO(b"\0\0\0\0\x07")
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(
        out, fastavro.parse_schema(AVRO), {"id": number, "at": TIME_MS, "price": Decimal("1.50")}
    )
    return b64encode(out.getvalue()).decode()


def test_records_are_chosen_by_their_fields(run, produced):
    topic = produced(*({"key": f"k{n}", "value": {"customer": {"id": n}, "tags": ["a"] * n}} for n in range(5)))
    ended = run("consume", topic, "--where", "value.customer.id >= 3 and not key = 'k4'", "-o", "json")
    assert [one["value"] for one in ended.lines] == [
        '{"customer": {"id": 3}, "tags": ["a", "a", "a"]}'.replace(": ", ":").replace(", ", ",")
    ]
    assert run("consume", topic, "--where", "exists value.tags[0]", "--format", "%o ", "-n", "2").out == "1 2 "
    assert run("consume", topic, "--where", "timestamp < '2000-01-01'").out == ""
    ended = run("consume", topic, "--where", "value.customer.id = ")
    assert ended.code == 2
    assert "--where: at 21: expected a path such as value.id" in ended.err


def test_a_moment_is_decoded_and_chosen_from(run, produced, tmp_path):
    topic = produced(*({"value_base64": avro(n), "timestamp": TIME_MS + n} for n in range(4)), {"value": "text"})
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(AVRO))
    words = ("at", topic, "2023-11-14 22:13:20")
    ended = run(*words, "--schema", schema, "--where", "value.id in (1, 3)", "-o", "json")
    assert [(one["value"]["id"], one["value_format"]) for one in ended.lines] == [(1, "avro"), (3, "avro")]
    assert "could not be decoded: not Avro of this schema" in ended.err
    shown = run(*words, "--schema", schema, "--where", "value.id = 2")
    assert shown.out.endswith('@2  -  {"id":2,"at":"2023-11-14T22:13:20.000Z","price":"1.50"}\n')
    assert run(*words, "--where", "value = 'text'").out.endswith("  text\n")


@pytest.mark.parametrize("command", [["consume"], ["at"]])
def test_keys_are_decoded_by_a_schema_file_and_chosen_by_their_fields(run, produced, tmp_path, command):
    topic = produced(
        *({"key_base64": avro(n), "value": f"v{n}", "timestamp": TIME_MS + n} for n in range(4)),
        {"key": "plain", "value": "odd", "timestamp": TIME_MS},
    )
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(AVRO))
    words = [*command, topic, *(["2023-11-14 22:13:20"] if command == ["at"] else []), "--key-schema", schema]
    ended = run(*words, "--where", "key.id in (1, 3)", "-o", "json")
    assert [(one["key"]["id"], one["key_schema"], one["value"]) for one in ended.lines] == [
        (1, "Order", "v1"),
        (3, "Order", "v3"),
    ]
    assert "the key of" in ended.err
    assert "could not be decoded: not Avro of this schema" in ended.err
    refused = run(*words, "--key-message", "Order")
    assert (refused.code, refused.out) == (2, "")
    assert "a message type is given, but" in refused.err


def test_a_group_commits_what_it_did_not_want_as_well(run, produced):
    topic = produced(*({"value": {"n": n}} for n in range(3)))
    group = unique("group")
    words = ("consume", topic, "--group", group, "--where", "value.n = 1", "--format", "%s\n")
    assert run(*words).out == '{"n":1}\n'
    assert run(*words).out == ""


def test_values_of_a_registry(run, produced, tmp_path):
    topic = produced(
        {"value_base64": avro(1)}, {"value_base64": avro(2)}, {"value_base64": "AAAAAAkC"}, {"value": "text"}
    )
    with RegistryThread({"/schemas/ids/7": {"schema": json.dumps(AVRO)}}) as registry:
        ended = run("consume", topic, "--registry", registry.url, "-o", "json")
        assert ended.code == 0
        first, second, broken, text = ended.lines
        assert first["value"] == {"id": 1, "at": "2023-11-14T22:13:20.000Z", "price": "1.50"}
        assert (second["value"]["id"], second["value_schema"], second["value_format"]) == (2, "Order (7)", "avro")
        problem = f"the registry {registry.url} has no schema 9"
        assert (broken["value"], broken["value_problem"]) == ("000000000902", problem)
        assert text["value"] == "text"
        assert f"@2 could not be decoded: {problem}" in ended.err
        shown = run(
            "consume",
            topic,
            "--registry",
            registry.url,
            "--where",
            "value.price = 1.5 and value.at < 'now' and value.id = 2",
        )
        assert shown.out.endswith('@1  -  {"id":2,"at":"2023-11-14T22:13:20.000Z","price":"1.50"}\n')
        assert shown.out.count("\n") == 1
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(AVRO))
    assert run("consume", topic, "--schema", schema, "-n", "1", "-o", "json").lines[0]["value"]["id"] == 1


def test_a_registry_that_is_down_ends_no_reading(run, produced, unused_tcp_port):
    topic = produced(*({"value_base64": avro(n)} for n in range(100)))
    ended = run("consume", topic, "--registry", f"http://127.0.0.1:{unused_tcp_port}", "-o", "json")
    assert (ended.code, len(ended.lines)) == (0, 100)
    assert ended.err.count("cannot be reached") == 1
    assert "100 keys and values could not be decoded, for the reason above" in ended.err


def test_a_profile_has_a_registry_and_its_credentials(horolog, session_broker, produced, tmp_path, monkeypatch):
    topic = produced({"value_base64": avro(1)})
    with RegistryThread({"/schemas/ids/7": {"schema": json.dumps(AVRO)}}) as registry:
        (tmp_path / "horolog").mkdir()
        config = tmp_path / "horolog/config.toml"
        config.write_text(
            f'[profiles.prod]\nbootstrap = "{session_broker.address}"\nregistry = "{registry.url}"\n'
            'schema.registry.basic.auth.user.info = "alice:geheim"\n'
        )
        config.chmod(0o644)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        ended = horolog("consume", topic, "-P", "prod", "-o", "json")
        assert ended.lines[0]["value"]["id"] == 1
        assert "Authorization: Basic YWxpY2U6Z2VoZWlt" in registry.server.asked[0]
        assert "holds a secret, and others on this machine can read it" in ended.err
        assert "geheim" not in ended.out + ended.err
