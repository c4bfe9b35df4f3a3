"""What `--format` writes of a record, decoded or not, and the words that it refuses."""

import argparse
import io

import pytest

from horolog.client.decoding import Decoded
from horolog.client.values.types import ConsumerRecord
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.online.formats import add_format, decoded_writer, format_of, writer

RECORD = ConsumerRecord("t", 3, 7, 1_700_000_000_000, 0, b"k", b"\xffv", (), 0)
DECODED = Decoded("k", {"id": 1}, "text", "avro", None, "Order", None, None)


def arguments(*words):
    parser = argparse.ArgumentParser()
    add_format(parser)
    return parser.parse_args(words)


@pytest.fixture
def console():
    return Console(out=io.StringIO(), err=io.StringIO(), environ={"TZ": "UTC"})


@pytest.mark.parametrize(
    ("words", "plain", "decoded"),
    [
        ([], b"2023-11-14T22:13:20.000+00:00  t-3@7  k  ", b'  k  {"id":1}\n'),
        (["--format", "text"], b"2023-11-14T22:13:20.000+00:00  t-3@7  k  ", b'  k  {"id":1}\n'),
        (["--format", "%p/%o %k\\n"], b"3/7 k\n", b"3/7 k\n"),
        (["--format", "json"], b'{"topic":"t","partition":3', b'"value_schema":"Order"}\n'),
    ],
)
def test_what_is_written(console, words, plain, decoded):
    assert writer(arguments(*words), console)(RECORD).startswith(plain)
    assert decoded_writer(arguments(*words), console)(RECORD, DECODED).endswith(decoded)


def test_raw_values_stay_as_they_are(console):
    assert writer(arguments("--format", "raw"), console)(RECORD).startswith(b"\xffv")
    assert decoded_writer(arguments("--format", "raw"), console) is None


def test_json_is_asked_for_in_either_way(console):
    console.as_json = True
    assert format_of(arguments(), console) == format_of(arguments("--format", "json"), console) == "json"


@pytest.mark.parametrize(
    ("words", "as_json", "said"),
    [
        (["--format", "xml"], False, "text, json, raw or a template that contains %s"),
        (["--format", "%y"], False, "--format: "),
        (["--format", "raw"], True, "-o json and --format raw are both given"),
    ],
)
def test_what_makes_no_sense_is_refused(console, words, as_json, said):
    console.as_json = as_json
    with pytest.raises(UsageError, match=said):
        writer(arguments(*words), console)
