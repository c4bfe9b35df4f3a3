"""A command's options choose the schemas that encode keys and values, and what does not fit is a refusal of its line."""

import argparse
import json

import pytest

from horolog.commands.arguments import Parser
from horolog.commands.errors import UsageError
from horolog.commands.online import encoding
from horolog.commands.online.record_text import Line, RecordTextError, read_plain
from horolog.testing import registry_in_thread

RECORD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture(scope="module")
def registry():
    with registry_in_thread() as running:
        running.register("t-value", RECORD)
        running.register("t-key", '"string"')
        yield running


def arguments(*words, settings=None):
    parser = Parser()
    encoding.add_encoding(parser)
    own = {"topic": "t", "client_settings": settings or {}, "timeout": 5000}
    return parser.parse_args(words, argparse.Namespace(**own))


async def line_of(*words, value=b'{"id": 7}', key=b"k", **given):
    keys, values = await encoding.encoders_of(arguments(*words, **given))
    return encoding.encoding(lambda line: read_plain(line, b"\t"), keys, values)(key + b"\t" + value)


async def test_without_options_lines_stay_as_they_are():
    read = object()
    assert encoding.encoding(read, *await encoding.encoders_of(arguments())) is read


async def test_a_registry_has_the_schema_of_the_topic(registry):
    assert await line_of("--registry", registry.url) == Line(b"\0\0\0\0\x01\x0e", b"k")
    words = ("--registry", registry.url, "--schema-id", "1", "--key-subject", "t-key")
    assert await line_of(*words) == Line(b"\0\0\0\0\x01\x0e", b"\0\0\0\0\x02\x02k")
    settings = {"schema.registry.url": registry.url}
    assert (await line_of(settings=settings)).value == b'{"id": 7}'
    assert (await line_of("--subject", "t-value", settings=settings)).value == b"\0\0\0\0\x01\x0e"


async def test_a_file_has_a_schema_too(tmp_path):
    path = tmp_path / "r.avsc"
    path.write_text(json.dumps(RECORD))
    assert await line_of("--schema", str(path)) == Line(b"\x0e", b"k")
    with pytest.raises(RecordTextError, match="field id: 'x' is not a whole number"):
        await line_of("--schema", str(path), value=b'{"id": "x"}')


async def test_a_message_of_a_protobuf_schema(tmp_path):
    path = tmp_path / "m.proto"
    path.write_text('syntax = "proto3"; message A { int64 id = 1; } message B { string id = 1; }')
    file = str(path)
    assert (await line_of("--schema", file)).value == b"\x08\x07"
    words = ("--schema", file, "--message", "B", "--key-schema", file, "--key-message", "A")
    line = await line_of(*words, value=b'{"id": "x"}', key=b'{"id": 1}')
    assert line == Line(b"\x0a\x01x", b"\x08\x01")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schema", "a", "--schema-id", "1"), "--schema and --schema-id both name a schema"),
        (("--key-subject", "a", "--key-schema-id", "1"), "--key-subject and --key-schema-id both name a schema"),
        (("--schema", "a", "--registry", "{url}"), "--registry has no effect beside --schema; give --subject"),
        (("--schema-id", "1"), "needs a registry; give --registry URL"),
        (("--schema", "none.avsc"), "none.avsc: No such file"),
        (("--key-message", "M"), "--key-message needs a schema; give --key-schema, --key-subject or --key-schema-id"),
        (("--subject", "none", "--registry", "{url}"), "has no version latest of none"),
    ],
)
async def test_wrong_usage(registry, words, said):
    with pytest.raises(UsageError) as refused:
        await encoding.encoders_of(arguments(*(word.format(url=registry.url) for word in words)))
    assert said in str(refused.value)
