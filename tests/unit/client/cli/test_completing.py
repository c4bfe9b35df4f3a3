"""What a shell is answered: the place of the word that is written, and its names."""

import asyncio
import io
from datetime import UTC

import pytest

from horolog.client.cli import completing
from horolog.client.cli.completing import answer, candidates, connection_of, place_of, times
from horolog.client.consuming.consumer import Consumer
from horolog.client.values.group_settings import GROUP_SETTINGS
from horolog.client.values.times import parse_duration, parse_time
from horolog.commands.console import Console
from horolog.testing import broker_in_thread

NOW_MS = 1_700_000_000_000
PROFILES = '[profiles.prod]\nbootstrap = "b:1"\n[profiles.test]\nregistry = "http://r"\n'


@pytest.fixture
def console(tmp_path):
    (tmp_path / "horolog").mkdir()
    (tmp_path / "horolog/config.toml").write_text(PROFILES)
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "TZ": "UTC"}
    return Console(out=io.StringIO(), err=io.StringIO(), environ=environ, now_ms=lambda: NOW_MS)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("consume ", "topics"),
        ("consume t ", ""),
        ("consume t --since ", "times"),
        ("consume --since 10:05 ", "topics"),
        ("consume --follow ", "topics"),
        ("consume --follow -", ""),
        ("consume -g ", "groups"),
        ("consume -P ", "profiles"),
        ("consume --schema ", ""),
        ("offsets t ", "times"),
        ("offsets t 10:05 ", "times"),
        ("topics ", ""),
        ("topics describe a ", "topics"),
        ("topics create ", ""),
        ("topics create x -c ", "assignments"),
        ("topics alter x -d ", "settings"),
        ("topics list ", "topics"),
        ("groups list ", "groups"),
        ("groups lag g -t ", "topics"),
        ("groups lag --alert ", "durations"),
        ("configs set ", ""),
        ("configs set topic ", "topics"),
        ("configs set group ", "groups"),
        ("configs set broker ", ""),
        ("configs set topic t ", "assignments"),
        ("configs unset topic t a b ", "settings"),
        ("acls add alice READ ", "resources"),
        ("gone ", ""),
        ("consume", ""),
        ("profiles ", ""),
    ],
)
def test_places(line, kind):
    assert place_of(line.split(" ")).kind == kind


def test_words_of_an_argument_that_has_choices(console):
    assert place_of(["configs", "set", ""]).choices == ("topic", "broker", "group")
    assert list(candidates(["configs", "set", "broker", ""], console)) == ["all", "0"]


def offered(console, *words):
    console.out = io.StringIO()
    answer(words, console)
    return console.out.getvalue().splitlines()


def test_names_that_need_no_broker(console):
    assert offered(console, "consume", "-P", "") == ["prod", "test"]
    assert offered(console, "consume", "-P", "te") == ["test"]
    assert offered(console, "topics", "alter", "x", "-d", "retention") == ["retention.bytes", "retention.ms"]
    assert offered(console, "configs", "set", "topic", "x", "cleanup.policy=") == [
        "cleanup.policy=compact",
        "cleanup.policy=delete",
    ]
    assert offered(console, "configs", "set", "topic", "x", "preallocate=t") == ["preallocate=true"]
    assert offered(console, "configs", "set", "topic", "x", "retention.ms=") == []
    assert offered(console, "configs", "set", "topic", "x", "gone=") == []
    assert "log.retention.hours=" in offered(console, "configs", "set", "broker", "all", "log.retention")
    assert offered(console, "configs", "set", "broker", "all", "sasl.enabled.mechanisms=PLAIN,S") == [
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
    ]
    assert "5m" in offered(console, "groups", "lag", "--alert", "")
    assert "topic:" in offered(console, "acls", "add", "a", "READ", "")


def test_words_of_a_list_are_offered_one_after_the_other(console):
    def values(written):
        return offered(console, "topics", "create", "x", "-c", f"cleanup.policy={written}")

    assert values("compact,") == ["cleanup.policy=compact,delete"]
    assert values("delete,c") == ["cleanup.policy=delete,compact"]
    assert values("delete,compact,") == []
    assert values("gone,") == []
    assert offered(console, "topics", "create", "x", "-c", "compression.type=gzip,") == []


def test_settings_of_groups(console):
    def values(written):
        return offered(console, "configs", "set", "group", "x", written)

    assert values("consumer.s") == ["consumer.session.timeout.ms="]
    assert values("share.isolation.level=") == [
        "share.isolation.level=read_committed",
        "share.isolation.level=read_uncommitted",
    ]
    assert values("share.renew.acknowledge.enable=t") == ["share.renew.acknowledge.enable=true"]
    assert values("retention.ms=") == values("consumer.session.timeout.ms=") == []
    assert offered(console, "configs", "unset", "group", "x", "streams.n") == ["streams.num.standby.replicas"]
    assert len(values("")) == len(GROUP_SETTINGS)


def test_times_are_times(console):
    found = times(console)
    assert "2023-11-14T22:13" in found
    assert all(parse_time(text, now_ms=NOW_MS, zone=UTC) for text in found)
    assert all(parse_duration(text) for text in completing.DURATIONS)


def test_where_the_broker_is():
    found = connection_of(["consume", "--bootstrap=a:1", "-P", "prod", "--command-config", "file", "t", "-b"])
    assert (found.bootstrap, found.profile, str(found.command_config)) == ("a:1", "prod", "file")
    assert connection_of(["consume", "-b", ""]).bootstrap is None


def test_silence_where_something_is_wrong(console, unused_tcp_port):
    for words in ((), ("consume", "-b", "no address", ""), ("consume", "-b", f"127.0.0.1:{unused_tcp_port}", "")):
        assert offered(console, *words) == []
    assert offered(console, "consume", "-P", "gone", "t", "-g", "") == []
    assert offered(console, "acls", "add", "a", "READ", "cluster:") == []
    assert console.err.getvalue() == ""


def test_names_of_a_broker(console):
    console.environ[completing.ANSWER_VARIABLE] = "60s"

    async def join(address):
        async with Consumer(address, group="billing") as consumer:
            await consumer.subscribe(["orders"])
            async with asyncio.timeout(60):
                while not consumer.assignment:
                    await consumer.poll(100)
            await consumer.commit()

    with broker_in_thread() as broker:
        broker.create_topic("orders", 1)
        broker.create_topic("__internal", 1)
        asyncio.run(join(broker.bootstrap))
        at = ("-b", broker.bootstrap)
        assert offered(console, "consume", *at, "") == ["orders", "__consumer_offsets", "__internal"]
        assert offered(console, "groups", "lag", *at, "") == ["billing"]
        assert "topic:orders" in offered(console, "acls", "add", "a", "READ", *at, "topic:")
