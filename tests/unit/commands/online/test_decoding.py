"""What records are looked at through: options become a lens, and what it sees is written with its reasons."""

import argparse
import io
import json

import pytest

from horolog.client.decoding import FORMATS
from horolog.client.values.types import ConsumerRecord
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.online import decoding, record_text
from horolog.commands.online.decoding import add_decoding, as_text, json_writer, lens_of

RECORD = ConsumerRecord("t", 0, 3, 0, 0, b"k", b'{"id": 7, "name": "\xc3\xa4"}')


@pytest.fixture
def console():
    made = Console(out=io.StringIO(), err=io.StringIO(), environ={"TZ": "UTC"}, now_ms=lambda: 1000)
    made.command = "c"
    return made


def arguments(*words, **settings):
    parser = argparse.ArgumentParser()
    add_decoding(parser)
    found = parser.parse_args(words)
    found.client_settings = settings
    found.timeout = 5000
    return found


def test_the_formats_are_those_of_the_library():
    assert decoding.FORMATS == FORMATS


def test_without_options_there_is_no_lens(console):
    assert lens_of(arguments(), console) is None
    assert lens_of(arguments(**{"bootstrap.servers": "b:1"}), console) is None


async def test_where_alone_leaves_records_as_they_are(console):
    lens = lens_of(arguments("--where", "value.id = 7"), console)
    assert await lens.decoded(RECORD) == (True, None)
    assert await lens.decoded(RECORD._replace(value=b'{"id":8}')) == (False, None)
    lens = lens_of(arguments("--where", "offset = 3"), console)
    assert lens.decoder is None
    assert await lens.decoded(RECORD) == (True, None)


async def test_what_is_decoded_is_written(console):
    lens = lens_of(arguments("--value-format", "json", "--key-format", "hex"), console)
    wanted, decoded = await lens.decoded(RECORD)
    assert wanted
    assert json.loads(json_writer(RECORD, decoded)) == {
        "topic": "t",
        "partition": 0,
        "offset": 3,
        "timestamp": 0,
        "timestamp_type": "CreateTime",
        "key": "6b",
        "value": {"id": 7, "name": "ä"},
        "headers": [],
        "key_format": "hex",
        "value_format": "json",
    }
    write = as_text(record_text.template_writer("%k %s", str))
    assert write(RECORD, decoded).decode() == '6b {"id":7,"name":"ä"}'
    _, nothing = await lens.decoded(RECORD._replace(key=None, value=None))
    assert (
        as_text(record_text.text_writer(str, str))(RECORD._replace(key=None, value=None), nothing)
        == b"0  t-0@3  -  -\n"
    )


async def test_each_reason_is_said_once_and_counted(console):
    lens = lens_of(arguments("--value-format", "json"), console)
    for offset in range(3):
        _, decoded = await lens.decoded(RECORD._replace(value=b"x", offset=offset))
    assert json.loads(json_writer(RECORD, decoded))["value_problem"].startswith("not JSON")
    lens.report()
    said = console.err.getvalue().splitlines()
    assert said[0] == "c: warning: the value of t-0@0 could not be decoded: not JSON: Expecting value at character 1"
    assert said[1:] == ["c: warning: 3 keys and values could not be decoded, for the reason above"]
    lens = lens_of(arguments("--value-format", "json", "--key-format", "json"), console)
    await lens.decoded(RECORD._replace(value=b"xx", key=b"[x"))
    lens.report()
    assert len(console.err.getvalue().splitlines()) == 4
    for number in range(10):
        await lens.decoded(RECORD._replace(value=b"[" * number + b"x", key=b"1"))
    lens.report()
    assert "12 keys and values could not be decoded, for 10 reasons" in console.err.getvalue()


def test_a_registry_is_of_the_command_line_or_of_the_profile(console):
    assert lens_of(arguments("--registry", "http://r:1"), console).decoder.registry.access.host == "r"
    lens = lens_of(arguments(registry="http://p:1", **{"basic.auth.user.info": "a:b"}), console)
    assert lens.shows_decoded
    assert lens.decoder.registry.access.user_info == "a:b"


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (["--where", "value ="], {}, "--where: at 8: expected a path"),
        (["--registry", "r:1"], {}, "--registry: expected http"),
        ([], {"registry": "http://r", "basic.auth.user.info": "x"}, "USER:PASSWORD"),
        (["--value-format", "avro"], {}, "needs a schema"),
        (["--message", "M"], {}, "a message is given for the value, but no schema file"),
        (["--key-message", "M"], {}, "a message is given for the key, but no schema file"),
        (["--key-schema", "gone.avsc"], {}, "gone.avsc: No such file"),
    ],
)
def test_what_makes_no_sense_is_refused(console, words, settings, said):
    with pytest.raises(UsageError, match=said):
        lens_of(arguments(*words, **settings), console)
