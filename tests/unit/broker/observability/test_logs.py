"""Log lines: one line each, for people or machines, with fields, levels that follow the settings, and bounded repeats."""

import io
import json
import logging
import re
from types import SimpleNamespace

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load
from horolog.broker.observability import logs


def settings(**given):
    return load(None, {}, {key.replace("_", "."): value for key, value in given.items()})[0]


@pytest.fixture
def logged():
    """`logged(**settings)` sets logging up and gives the stream."""
    root = logging.getLogger()
    level, made = root.level, []

    def set_up(**given):
        stream = io.StringIO()
        made.append(logs.LogSetup(settings(**given), stream))
        stream.setup = made[-1]
        return stream

    yield set_up
    for one in made:
        one.close()
    root.setLevel(level)


log = logging.getLogger("horolog.broker.network.conversation")


def lines(stream):
    return stream.getvalue().splitlines()


def test_text(logged):
    stream = logged()
    log.info("closing %s", "it", extra={"peer": "10.0.0.1", "client_id": "c"})
    (line,) = lines(stream)
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(
        moment + r" INFO broker\.network\.conversation: closing it \[peer=10\.0\.0\.1 client_id=c\]", line
    )


def test_json(logged):
    stream = logged(horolog_log_format="json")
    log.warning("%s-%s: new segment", "orders", 3)
    log.warning("group %s: gone", "g")
    log.warning("%s is slow", SimpleNamespace(topic="t", index=1))
    found = [json.loads(line) for line in lines(stream)]
    assert found[0]["message"] == "orders-3: new segment"
    assert (found[0]["topic"], found[0]["partition"]) == ("orders", 3)
    assert found[1]["group"] == "g"
    assert (found[2]["topic"], found[2]["partition"]) == ("t", 1)
    assert {"time", "level", "logger"} <= found[0].keys()


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_of_a_worker_say_which_it_is(form):
    stream = io.StringIO()
    setup = logs.LogSetup(settings(horolog_log_format=form), stream, worker=2)
    log.warning("t-%s is offline", 1, extra={"topic": "t"})
    setup.close()
    (line,) = lines(stream)
    if form == "json":
        assert (json.loads(line)["worker"], json.loads(line)["topic"]) == (2, "t")
    else:
        assert line.endswith("t-1 is offline [worker=2 topic=t]")


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_peer_puts_into_a_line_does_not_make_another(logged, form):
    stream = logged(horolog_log_format=form)
    log.info("hello from %s", "a\nERROR forged\r\x1b[2J\u2028", extra={"client_id": "x\ny"})
    (line,) = lines(stream)
    assert "forged" in line
    assert "\x1b" not in line


def test_an_exception_in_json_is_one_line(logged):
    stream = logged(horolog_log_format="json")
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed")
    (line,) = lines(stream)
    assert "ValueError: bad" in json.loads(line)["exception"]


def test_levels_follow_the_settings(logged):
    stream = logged(horolog_log_levels="broker.network:DEBUG", horolog_log_level="WARNING")
    other = logging.getLogger("horolog.broker.groups")
    log.debug("1")
    other.info("2")
    stream.setup.apply(settings(horolog_log_level="INFO"))
    log.debug("3")
    other.info("4")
    assert [line[-1] for line in lines(stream)] == ["1", "4"]


@pytest.mark.parametrize("text", ["broker", "broker:LOUD", ":INFO", "a:INFO,b"])
def test_wrong_levels_are_refused(text):
    with pytest.raises(SettingsError, match="NAME:LEVEL"):
        settings(horolog_log_levels=text)


def record(name, level, message):
    return logging.LogRecord(name, level, "", 0, message, (), None)


def test_repeats_of_a_peer_are_cut_and_counted():
    now = [0.0]
    repeats = logs.Repeats(lambda: now[0])
    passed = [repeats.filter(record("horolog.broker.network", logging.INFO, "closing %s")) for _ in range(100)]
    assert sum(passed) == logs.MAX_REPEATS
    assert repeats.filter(record("horolog.broker.network", logging.INFO, "another"))
    now[0] += logs.WINDOW_S
    following = record("horolog.broker.network", logging.INFO, "closing %s")
    assert repeats.filter(following)
    assert following.left_out == 100 - logs.MAX_REPEATS


def test_faults_of_our_own_disk_are_always_told():
    repeats = logs.Repeats(lambda: 0.0)
    assert all(repeats.filter(record("horolog.broker.log", logging.ERROR, "damage")) for _ in range(100))


def test_kinds_are_bounded(monkeypatch):
    monkeypatch.setattr(logs, "MAX_KINDS", 10)
    repeats = logs.Repeats(lambda: 0.0)
    for number in range(100):
        repeats.filter(record("horolog.broker.network", logging.INFO, f"kind {number}"))
    assert len(repeats._kinds) <= 10
