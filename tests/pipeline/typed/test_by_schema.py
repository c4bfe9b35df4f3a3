"""Schemas of files, texts and registries make readers: the reader's schema is settled once, each record is read as it was written."""

import json
import pickle
from importlib.resources import files

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from horolog.client.decoding import RegistryAccess
from horolog.client.decoding.values import DecodingError
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.preparing import prepare
from horolog.pipeline.typed import by_schema
from horolog.pipeline.typed.by_schema import NoRegistry
from horolog.pipeline.typed.options import parse_typed
from tests.pipeline.typed.test_avro_columns import fields, written
from tests.support.registry_server import RegistryThread

V1 = fields({"name": "id", "type": "int"})
V2 = fields({"name": "id", "type": "long"}, {"name": "name", "type": "string", "default": "?"})
OTHER = fields({"name": "id", "type": "string"})
SHOP = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
import "money.proto";
message Order {
  enum State { NEW = 0; DONE = 1; }
  message Empty {}
  uint64 id = 1; uint32 small = 2; string name = 3; bytes data = 4; State state = 5; repeated State states = 6;
  map<int32, Money> prices = 7; map<bool, string> flags = 8; optional int32 maybe = 9;
  google.protobuf.Timestamp at = 10; google.protobuf.Int64Value wrapped = 11; google.protobuf.Struct loose = 12;
  Empty nothing = 13; float ratio = 14; repeated Money all = 15; oneof pay { string card = 16; Money cash = 17; }
  map<string, Empty> none = 18;
}
message Other { Order order = 1; }
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
LOOP = 'syntax = "proto3"; message Loop { Loop inside = 1; }'


@pytest.fixture
def proto(tmp_path):
    (tmp_path / "shop.proto").write_text(SHOP)
    (tmp_path / "money.proto").write_text(MONEY)
    out = tmp_path / "shop.desc"
    words = ["", f"-I{tmp_path}", f"-I{files('grpc_tools') / '_proto'}", "--include_imports"]
    assert protoc.main([*words, f"--descriptor_set_out={out}", "shop.proto"]) == 0
    return tmp_path


def message_of(folder, name="shop.Order"):
    pool = descriptor_pool.DescriptorPool()
    for one in descriptor_pb2.FileDescriptorSet.FromString((folder / "shop.desc").read_bytes()).file:
        pool.Add(one)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def decoding(topics=("orders",), **options):
    typed = parse_typed({name.replace("_", "."): str(value) for name, value in options.items()}.get)
    return pickle.loads(pickle.dumps(prepare(typed, topics, include_headers=False)))


def order(folder):
    made = message_of(folder)(
        id=2**64 - 1, small=2**32 - 1, name="n", data=b"\xff", state=1, states=[1, 0, 7], card="c"
    )
    made.prices[3].units = 5
    made.flags[True] = "yes"
    made.at.FromJsonString("2026-11-17T10:00:00.5Z")
    made.wrapped.value = 9
    made.loose.update({"a": [1, "x"]})
    made.all.add(units=1)
    return made


@pytest.mark.parametrize("file", ["shop.proto", "shop.desc"])
def test_protobuf_of_files(proto, file):
    reader = decoding(value_format="protobuf", value_schema=proto / file, value_message="Order").value
    data = order(proto).SerializeToString()
    column = reader.read(pa.array([data, b"", data[:-1], None, b"\x00\x00\x00\x00\x07\x00" + data]))
    assert column.problems.keys() == {2}
    full, empty, _, _, headed = column.values.to_pylist()
    assert full == headed
    assert (int(full["id"]), full["small"], full["state"], full["states"]) == (
        2**64 - 1,
        2**32 - 1,
        "DONE",
        ["DONE", "NEW", "7"],
    )
    assert (full["prices"], full["flags"], full["all"]) == ([(3, {"units": 5})], [(True, "yes")], [{"units": 1}])
    assert (full["at"].isoformat(), full["wrapped"]) == ("2026-11-17T10:00:00.500000+00:00", 9)
    assert json.loads(full["loose"]) == {"a": [1, "x"]}
    assert (full["card"], full["cash"], full["maybe"]) == ("c", None, None)
    assert "nothing" not in full
    assert "none" not in full
    assert (empty["id"], empty["name"], empty["maybe"], empty["at"], empty["prices"]) == (0, "", None, None, [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_format": "protobuf", "value_schema": LOOP}, "the message Loop is recursive"),
        ({"value_format": "protobuf", "value_schema": 'syntax = "proto3"; message A {}'}, "the message A has no field"),
        ({"value_format": "protobuf", "value_schema": SHOP.replace("import", "//")}, "value.schema: .*Money|Timestamp"),
        (
            {"value_format": "protobuf", "value_schema": MONEY, "value_message": "X"},
            "no message X; it has shop.Money",
        ),
        ({"value_format": "avro", "value_schema": "/nowhere/a.avsc"}, "value.schema: /nowhere/a.avsc: No such file"),
        ({"value_format": "avro", "value_schema": "{"}, "value.schema: the schema is not JSON"),
        ({"key_format": "json", "key_schema": "id"}, "key.schema is not a schema of Spark"),
    ],
)
def test_schemas_that_cannot_be_used(options, said):
    with pytest.raises(OptionError, match=said):
        decoding(**options)


def test_schemas_in_files(tmp_path):
    (tmp_path / "order.avsc").write_text(json.dumps(V1))
    (tmp_path / "order.ddl").write_text("id INT")
    (tmp_path / "bad.ddl").write_bytes(b"\xff")
    assert decoding(value_format="avro", value_schema=tmp_path / "order.avsc").value.kind == pa.struct(
        [("id", pa.int32())]
    )
    found = decoding(value_format="json", value_schema=f"file:{tmp_path}/order.ddl", key_format="string")
    assert (found.value.kind, found.key.kind) == (pa.struct([("id", pa.int32())]), pa.string())
    with pytest.raises(OptionError, match="is not UTF-8 text"):
        decoding(value_format="json", value_schema=tmp_path / "bad.ddl")


@pytest.fixture
def registry():
    answers = {
        "/subjects/orders-value/versions/latest": {"schema": json.dumps(V2), "id": 2},
        "/subjects/orders-value/versions/1": {"schema": json.dumps(V1), "id": 1},
        "/subjects/proto/versions/latest": {
            "schema": SHOP, "id": 9, "schemaType": "PROTOBUF",
            "references": [{"name": "money.proto", "subject": "money", "version": 1}],
        },
        "/subjects/money/versions/1": {"schema": MONEY, "schemaType": "PROTOBUF"},
        **{f"/schemas/ids/{n}": {"schema": json.dumps(one)} for n, one in enumerate((V1, V2, OTHER), 1)},
        "/schemas/ids/4": {"schema": MONEY, "schemaType": "PROTOBUF"},
    }  # fmt: skip
    with RegistryThread(answers) as server:
        yield server


def framed(number, schema, value):
    return b"\x00" + number.to_bytes(4, "big") + written(schema, value)[0].as_py()


def test_records_of_many_schemas_are_read_as_the_newest(registry):
    reader = decoding(value_format="avro", registry=registry.url).value
    rows = [framed(1, V1, {"id": 5}), framed(2, V2, {"id": 2**40, "name": "x"}), framed(3, OTHER, {"id": "x"}), framed(77, V1, {"id": 1}), b"{}"]  # fmt: skip
    column = reader.read(pa.array([*rows, framed(4, V1, {"id": 1}), *rows[:2]]))
    five, large = {"id": 5, "name": "?"}, {"id": 2**40, "name": "x"}
    assert column.values.to_pylist() == [five, large, None, None, None, None, five, large]
    assert column.problems[2] == "schema 3 of the registry cannot be read: field id: string is no long"
    assert "has no schema 77" in column.problems[3]
    assert "does not begin with a zero byte" in column.problems[4]
    assert "has the type PROTOBUF, but the format is avro" in column.problems[5]
    asked = [head.split()[1] for head in registry.server.asked]
    assert asked.count("/schemas/ids/1") == 1
    older = decoding(value_format="avro", registry=registry.url, value_version=1).value
    assert older.kind == pa.struct([("id", pa.int32())])
    assert older.read(pa.array([rows[1]])).problems.keys() == {0}  # a long is no int


def test_protobuf_of_a_registry(registry, proto):
    reader = decoding(
        value_format="protobuf", registry=registry.url, value_subject="proto", value_message="Order"
    ).value
    data = order(proto).SerializeToString()
    head = b"\x00\x00\x00\x00\x09"
    column = reader.read(pa.array([head + b"\x00" + data, head + b"\x02\x02" + data, data]))
    assert column.values[0].as_py()["name"] == "n"
    assert "it is a message shop.Other" in column.problems[1]
    assert column.problems.keys() == {1, 2}


def test_a_registry_that_does_not_answer_is_no_fault_of_records(registry):
    reader = decoding(value_format="avro", registry=registry.url).value
    registry.server.answers = {"/schemas/ids/1": 503, "/schemas/ids/2": 401}
    for number in (1, 1, 2, 1):
        with pytest.raises(NoRegistry, match=r"the registry http://127.0.0.1:.* "):
            reader.read(pa.array([framed(number, V1, {"id": 5})]))


@pytest.mark.parametrize(
    ("options", "topics", "said"),
    [
        ({}, ("a", "b"), "set value.subject to choose the schema"),
        ({}, (), "set value.subject to choose the schema"),
        ({"value_subject": "none"}, ("a",), "has no version latest of none"),
        ({"value_subject": "proto"}, ("a",), "proto has the type PROTOBUF, but value.format is avro"),
    ],
)
def test_subjects_that_are_none(registry, options, topics, said):
    with pytest.raises(OptionError, match=said):
        decoding(topics, value_format="avro", registry=registry.url, **options)


SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value.schema": "a INT"}, "value.schema needs value.format"),
        ({"dead.letter.topic": "d"}, "dead.letter.topic needs value.format or key.format"),
        ({"value.format": "xml"}, "value.format: 'xml' is not one of json"),
        ({"value.format": "json"}, "value.schema must define the columns of json"),
        ({"value.format": "avro"}, "avro needs value.schema .* or a registry"),
        ({"value.format": "string", "value.schema": "a INT"}, "does not apply to the format string"),
        ({"value.format": "string", "key.message": "M"}, "key.message needs key.format"),
        ({"value.format": "avro", "value.schema": '"int"', "value.message": "M"}, "value.message is only for protobuf"),
        (
            {"value.format": "avro", "value.schema": '"int"', "value.subject": "s"},
            "value.subject is only for a schema of a",
        ),
        (
            {"value.format": "avro", "registry": "http://r", "value.version": "newest"},
            "neither a version number nor latest",
        ),
        (
            {"value.format": "string", "mode": "strict"},
            "mode: 'strict' is not one of permissive, dropmalformed, failfast",
        ),
        ({"value.format": "string", "mode": "failfast", "dead.letter.topic": "d"}, "give only one of them"),
        ({"value.format": "string", "dead.letter.topic": " "}, "is not a name of a topic"),
        ({"value.format": "string", "timestamp.field": "a"}, "value.format has no fields"),
        ({"key.format": "string", "timestamp.field": "a"}, "value.format has no fields"),
        ({"value.format": "string", "timestamp.unit": "ms"}, "timestamp.unit needs timestamp.field"),
        ({"value.format": "avro", "registry": f"ftp://u:{SECRET}@r"}, "registry: expected http"),
        ({"value.format": "avro", "registry": "http://r", "basic.auth.user.info": SECRET}, "expected USER:PASSWORD"),
        ({"value.format": "string", "bearer.auth.token": SECRET}, "bearer.auth.token needs registry"),
        (
            {"value.format": "avro", "registry": f"http://u:{SECRET}@r"},
            "Spark shows addresses, so put the password elsewhere",
        ),
        (
            {"value.format": "avro", "registry": "http://r", "registry.password": SECRET},
            "registry.password needs",
        ),
        (
            {"value.format": "avro", "registry": "http://r", "registry.user": "a:b", "registry.password": "x"},
            "cannot have a colon",
        ),
        (
            {
                "value.format": "avro",
                "registry": "http://r",
                "registry.user": "u",
                "registry.password": SECRET,
                "basic.auth.user.info": "u:p",
            },
            "are both given",
        ),
        (
            {"value.format": "string", "value.formt": "x"},
            "there is no option value.formt; do you mean value.format?",
        ),
    ],
)
def test_options_that_do_not_go_together(options, said):
    with pytest.raises(OptionError, match=said) as caught:
        parse_read({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **options}, 0)
    assert SECRET not in str(caught.value)


def test_over_files_dead_letters_need_a_broker_and_nothing_else_does():
    files = {"path": "/x", "value.format": "string"}
    with pytest.raises(OptionError, match=r"dead.letter.topic of files needs kafka.bootstrap.servers"):
        parse_read(files | {"dead.letter.topic": "d"}, 0)
    with pytest.raises(OptionError, match=r"exactly one of kafka.bootstrap.servers and a path"):
        parse_read(files | {"kafka.bootstrap.servers": "b:1"}, 0)
    letters = {"dead.letter.topic": "d", "kafka.bootstrap.servers": "b:1", "kafka.sasl.mechanism": "PLAIN"}
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    login = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.jaas.config": module}
    found = parse_read(files | letters | login, 0)
    assert (found.path, found.bootstrap, found.typed.dead_letters) == ("/x", "b:1", "d")
    assert found.security is not None
    with pytest.raises(OptionError, match=r"kafka.fetch.max.bytes is for reading from a broker"):
        parse_read(files | letters | login | {"kafka.fetch.max.bytes": "1"}, 0)


def test_options_show_no_secret():
    given = {"value.format": "avro", "Registry": "http://r", "SCHEMA.REGISTRY.basic.auth.user.info": f"u:{SECRET}"}
    options = parse_read({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **given}, 0)
    assert options.typed.registry == RegistryAccess("http://r", user_info=f"u:{SECRET}")
    assert SECRET not in repr(options)
    own = {"value.format": "avro", "registry": "http://r", "registry.user": "u", "registry.password": SECRET}
    assert parse_typed(own.get).registry == options.typed.registry
    assert options.typed.mode == "permissive"
    letters = parse_typed({"value.format": "string", "dead.letter.topic": "d"}.get)
    assert (letters.mode, letters.dead_letters) == ("dropmalformed", "d")


def test_a_reader_says_how_it_is_opened():
    with pytest.raises(NotImplementedError):
        by_schema._BySchema(pa.int64(), by_schema.SchemaText(""), None).read(pa.array([b""]))


def test_bytes_behind_a_head_are_read_where_bytes_alone_are_not():
    def read(data):
        if data != b"good":
            raise DecodingError("it is not good")
        return 7

    either = by_schema._own_or_headed(read, by_schema._behind_head)
    assert either(b"good") == 7
    assert either(b"\x00\x00\x00\x00\x01good") == 7
    assert either(b"\xc3\x01" + bytes(8) + b"good") == 7
    for bad in (b"bad", b"\x00bad", b"\x00\x00\x00\x00\x01bad"):
        with pytest.raises(DecodingError, match="it is not good"):
            either(bad)
