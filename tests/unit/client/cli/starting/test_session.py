"""A session serves until it is stopped, takes its temporary folder along, and ends with the error of its introduction."""

import gc
import io
import json
import signal
from pathlib import Path

import pytest

from horolog.broker.server import app
from horolog.client.cli.starting import filling, pages, session
from horolog.client.cli.starting.session import UpOptions, UpSession
from horolog.commands.console import Console

OPTIONS = UpOptions(None, 0, None, demo=False, settings={})


class Page:
    url = "http://127.0.0.1:1/"
    ends = 0

    async def end(self):
        Page.ends += 1


@pytest.fixture(autouse=True)
def one_process(monkeypatch, tmp_path):
    """The process of the tests is not the broker's own: memory, signals and temporary files stay as they are."""
    monkeypatch.setattr(app, "keep_free_memory", lambda _: None)
    monkeypatch.setattr(session.tempfile, "tempdir", str(tmp_path))
    threshold, handlers = gc.get_threshold(), {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def console():
    made = Console(io.StringIO(), io.StringIO(), environ={})
    made.zone_name = "UTC"
    return made


@pytest.fixture
def shown(monkeypatch):
    """The introduced broker, and whether its folder exists; then the session is stopped."""
    found, show = [], UpSession._show

    def and_stop(self, started):
        show(self, started)
        found.append(started)
        found.append(Path(started.data).is_dir())
        self._stopped.set()

    monkeypatch.setattr(UpSession, "_show", and_stop)
    return found


@pytest.fixture
def page(monkeypatch):
    asked = []

    async def start(*given):
        asked.append(given)
        return Page()

    monkeypatch.setattr(pages, "start", start)
    Page.ends = 0
    return asked


def test_a_broker_alone_in_a_temporary_folder(console, shown, tmp_path):
    console.as_json = True
    session.run(OPTIONS, console)
    started, was_there = shown
    assert was_there
    assert (started.console, started.is_temporary, started.written) == (None, True, {})
    assert list(tmp_path.iterdir()) == []
    assert json.loads(console.out.getvalue())["bootstrap"] == started.bootstrap


def test_with_pages_and_sample_data(console, shown, page, tmp_path):
    folder = tmp_path / "data"
    options = OPTIONS._replace(data=str(folder), console_port=0, demo=True)
    session.run(options, console)
    started, _ = shown
    assert (page[0][:3], Page.ends) == ((started.bootstrap, 0, "UTC"), 1)
    assert started.written.keys() == {"orders", "payments"}
    assert (folder / "orders-0").is_dir()
    assert f"console  {Page.url}" in console.out.getvalue()
    assert console.err.getvalue() == ""
    session.run(options._replace(console_port=None), console)
    assert "exist already" in console.err.getvalue()


def test_pages_that_do_not_start_are_left_out(console, shown, monkeypatch):
    async def start(*_):
        return None

    monkeypatch.setattr(pages, "start", start)
    session.run(OPTIONS._replace(console_port=0), console)
    assert shown[0].console is None
    assert "without a console" in console.err.getvalue()


def test_an_error_of_the_introduction_ends_it(console, page, monkeypatch, tmp_path):
    async def fill(*_):
        raise RuntimeError("the sample data is ill")

    monkeypatch.setattr(filling, "fill", fill)
    with pytest.raises(RuntimeError, match="is ill"):
        session.run(OPTIONS._replace(console_port=0, demo=True), console)
    assert Page.ends == 1
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_stopped_before_it_is_introduced(console, page, monkeypatch):
    ready = UpSession.ready

    def and_stop(self, broker):
        ready(self, broker)
        self._stopped.set()

    monkeypatch.setattr(UpSession, "ready", and_stop)
    session.run(OPTIONS._replace(console_port=0), console)
    assert console.out.getvalue() == ""


def test_settings_are_the_users_but_for_address_and_folder(tmp_path):
    options = OPTIONS._replace(port=1234, settings={"num.partitions": "3", "listeners": "PLAINTEXT://0.0.0.0:1"})
    found, warnings = session.settings_of(options, str(tmp_path))
    assert (found.num_partitions, found.horolog_log_level, warnings) == (3, "WARNING", [])
    assert found.listeners == ("PLAINTEXT://127.0.0.1:1234",)


def test_warnings_about_settings_are_shown(console, shown):
    session.run(OPTIONS._replace(settings={"zookeeper.connect": "x:1"}), console)
    assert "zookeeper.connect" in console.err.getvalue()


async def test_there_may_be_nothing_to_part_from(console):
    assert await UpSession(OPTIONS, console, "/tmp/x", session.asyncio.Event()).part() is None
