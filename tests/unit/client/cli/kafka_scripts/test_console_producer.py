"""`kafka-console-producer`: lines become records, with keys, headers and nulls as the properties say."""

import argparse

import pytest

from horolog.client.cli.kafka_scripts.console_producer import producer_options
from horolog.commands.errors import UsageError


def records(scripts, topic):
    return [(one.key, one.value, [tuple(header) for header in one.headers]) for one in scripts.broker.records(topic)]


def test_lines_become_records(scripts):
    assert scripts.run("kafka-console-producer", "--topic", "made", stdin="one\ntwo\n").code == 0
    assert sorted(value for _, value, _ in records(scripts, "made")) == [b"one", b"two"]


def test_lines_may_have_keys_and_headers(scripts):
    scripts.broker.create_topic("keyed")
    words = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    options = [word for each in words for word in ("--reader-property", each)]
    lines = "h1:a,h2:b\tk1\tone\nh:\tk2\tNULL\n"
    assert scripts.run("kafka-console-producer", "--topic", "keyed", "--sync", *options, stdin=lines).code == 0
    assert records(scripts, "keyed") == [
        (b"k1", b"one", [(b"h1", b"a"), (b"h2", b"b")]),
        (b"k2", None, [(b"h", b"")]),
    ]


@pytest.mark.parametrize("ignores", [False, True])
def test_a_line_that_is_refused_is_named_and_ends_it_unless_errors_are_ignored(scripts, ignores):
    scripts.broker.create_topic(f"strict-{ignores}")
    more = ("--property", f"ignore.error={str(ignores).lower()}")
    words = ("--topic", f"strict-{ignores}", "--property", "parse.key=true", *more)
    ended = scripts.run("kafka-console-producer", *words, stdin="k\tone\nno key\nk\ttwo\n")
    assert ended.code == (0 if ignores else 1)
    values = [value for _, value, _ in records(scripts, f"strict-{ignores}")]
    if ignores:
        assert (values[0], values[-1]) == (b"one", b"two")
    else:
        assert "standard input, line 2: " in ended.err
        assert "the broker refused 1 line" in ended.err
        assert values == [b"one"]


def options_of(words=(), **given):
    parser = argparse.ArgumentParser()
    parser.add_argument("--compression-codec", nargs="?", const="gzip")
    parser.add_argument("--request-required-acks")
    parser.add_argument("--sync", action="store_true")
    return producer_options(parser.parse_args(words), {key.replace("_", "."): value for key, value in given.items()})


def test_options_of_kafkas_producer_are_those_of_ours():
    assert options_of() == {"acks": "all"}
    assert options_of(["--compression-codec"], acks="1") == {"acks": "1", "compression": "gzip"}
    assert options_of(["--request-required-acks", "0", "--compression-codec", "none"], compression_type="lz4") == {
        "acks": "0"
    }
    assert options_of(compression_type="lz4", linger_ms="7", batch_size="100") == {
        "acks": "all",
        "compression": "lz4",
        "linger_ms": 7,
        "batch_bytes": 100,
    }
    assert options_of(["--sync"], linger_ms="7") == {"acks": "all", "linger_ms": 0, "batch_bytes": 1}
    with pytest.raises(UsageError, match=r"linger\.ms: 'soon' is not a whole number"):
        options_of(linger_ms="soon")


def test_an_option_that_makes_no_sense_is_refused(scripts):
    ended = scripts.run("kafka-console-producer", "--topic", "t", "--compression-codec", "rar")
    assert (ended.code, "compression 'rar': expected one of" in ended.err) == (1, True)
