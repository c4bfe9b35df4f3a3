"""Workers are started in order, replaced when they end, and ended together. Processes are real, what runs in them is a stand-in."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.cluster import settling
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.config.settings import load
from horolog.broker.log.storage import FolderInUse, RealStorage, StorageFault
from horolog.broker.observability.phase import Phase
from horolog.broker.security.tls_listeners import TlsListeners
from horolog.broker.server import backup_child
from horolog.broker.workers import ends, ports, supervisor, tether, worker_process
from horolog.broker.workers.folder_locks import FolderLocks
from horolog.broker.workers.supervisor import Supervisor, WorkerPlan, static_of
from tests.support import fake_backup, fake_worker
from tests.support.http_asking import get
from tests.support.waiting import until


class Crew:
    """A supervisor of fake workers, each behaving as told at each of its starts; the last behaviour goes on."""

    def __init__(self, folder, behaviours, **settings):
        given = {"listeners": "PLAINTEXT://127.0.0.1:0"} | settings
        self.settings = load(None, {}, {key.replace("_", "."): value for key, value in given.items()})[0]
        self.folder = folder / "data"
        self.sockets = folder / "sockets"
        self.sockets.mkdir()
        self._behaviours = {number: list(many) for number, many in enumerate(behaviours, 1)}
        self.locks = FolderLocks([str(self.folder)])
        self.reserved = ports.Reserved(ports.planned(self.settings, len(behaviours)))
        self.nodes = tuple(5 + place for place in range(len(behaviours)))
        self.plan = WorkerPlan(
            self.settings,
            [str(self.folder)],
            self.nodes,
            self.locks,
            self.reserved,
            str(self.sockets),
            TlsListeners(self.settings),
        )
        self.supervisor = None
        self.running = None

    def command(self, number, descriptor):
        many = self._behaviours[number]
        behaviour = many.pop(0) if len(many) > 1 else many[0]
        return [sys.executable, "-S", "-E", fake_worker.__file__, str(number), str(descriptor), behaviour]

    def begin(self, environ=None):
        loop = asyncio.get_running_loop()
        self.supervisor = Supervisor(self.plan, loop, SystemClock(), command=self.command, environ=environ or {})
        self.running = asyncio.create_task(self.supervisor.serve())

    async def until(self, true, seconds=20.0):
        async with asyncio.timeout(seconds):
            while not true():
                assert not self.running.done(), self.running
                await asyncio.sleep(0.005)

    async def ready(self):
        await self.until(lambda: self.supervisor.phase is Phase.READY)

    async def ended(self):
        async with asyncio.timeout(20):
            return await self.running

    def worker(self, number):
        return self.supervisor.workers[number - 1]

    def heard(self, number):
        path = self.folder / f"heard-{number}"
        return path.read_text().splitlines() if path.exists() else []

    def pid(self, number):
        return int((self.folder / f"pid-{number}").read_text())


@pytest.fixture
async def crew(tmp_path, monkeypatch):
    """Makes crews, and leaves nobody behind."""
    made = []
    monkeypatch.setattr(supervisor, "merge", lambda paths: made[0].merged.append(list(paths)))

    def make(*behaviours, **settings):
        one = Crew(tmp_path, behaviours, **settings)
        one.merged = []
        made.append(one)
        return one

    yield make
    for one in made:
        if one.running is not None and not one.running.done():
            one.supervisor.stop(signal.SIGTERM)
            for worker in one.supervisor.workers:
                worker.kill()
            await one.ended()
        one.reserved.release()
        one.locks.release()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_all_are_started_and_told_when_the_folder_is_settled(crew, capsys):
    three = crew(["good"], ["good"], ["good"])
    three.begin()
    await three.ready()
    await three.until(lambda: all(three.heard(number)[-1:] == ["live [5, 6, 7]"] for number in (1, 2, 3)))
    assert [three.heard(number)[0] for number in (1, 2, 3)] == ["go"] * 3
    port = three.reserved.listeners[0].shared
    line = f"ready on PLAINTEXT 127.0.0.1:{port}, data in {three.folder}, 3 workers\n"
    assert capsys.readouterr().out.endswith(line)
    pids = [three.pid(number) for number in (1, 2, 3)]
    three.supervisor.stop(signal.SIGTERM)
    assert await three.ended() == 0
    assert not any(map(is_running, pids))
    assert three.merged == [[str(three.folder)]]
    assert "STOPPING" in repr(three.supervisor).upper()


async def test_a_backup_hears_where_the_logs_of_all_ended_at_one_instant(crew, tmp_path, monkeypatch):
    monkeypatch.setattr(backup_child, "MODULE", fake_backup.__name__)
    three = crew(["good"], ["good"], ["good"], horolog_backup_store=f"file://{tmp_path}/copy")
    three.begin()
    await three.ready()
    await three.until(lambda: three.supervisor.backup_figures().moments == 1)
    assert three.supervisor.backup_figures().size_bytes == 300
    assert all(three.heard(number)[-1].startswith("stand ") for number in (1, 2, 3))
    three.supervisor.stop(signal.SIGTERM)
    assert await three.ended() == 0


async def test_nobody_goes_before_the_first_has_settled(crew):
    two = crew(["never-ready"], ["good"])
    orders = two.plan.orders(6, is_first=False)
    context = WorkerContext.from_json(json.loads(json.dumps(orders["context"])))
    assert (context.node, context.nodes, context.is_first, context.number) == (6, (5, 6), False, 2)
    assert context.own_ports["PLAINTEXT"] == context.ports["PLAINTEXT"][6]
    assert context.shared_ports["PLAINTEXT"] not in context.ports["PLAINTEXT"].values()
    two.begin()
    await two.until(lambda: two.heard(2) != [])
    assert two.supervisor.phase is Phase.STARTING
    two.supervisor.stop(signal.SIGINT)
    assert await two.ended() == 130
    assert two.merged == []


def test_workers_have_the_settings_that_were_read_and_their_own_number(crew):
    settings = load(None, {}, {"broker.id": "4", "num.partitions": "3"})[0]
    assert static_of(settings, 9) == {"node.id": "9", "num.partitions": "3"}
    watched = load(None, {}, {"horolog.http.listen": "[::1]:0"})[0]
    assert static_of(watched, 9, 9464)["horolog.http.listen"] == "[::1]:9464"
    assert static_of(watched, 9)["horolog.http.listen"] == "[::1]:0"
    assert static_of(load(None, {}, {"horolog.http.listen": "a:90"})[0], 9, 90)["horolog.http.listen"] == "a:90"


def test_workers_over_a_store_have_folders_of_their_own():
    given = {"log.dir": "/a", "log.dirs": "/b,/c", "horolog.store": "s3://bucket/prefix"}
    assert static_of(load(None, {}, given)[0], 9)["log.dirs"] == "/b/brokers/9,/c/brokers/9"
    alone = load(None, {}, {"log.dir": "/a", "horolog.store": "s3://bucket/prefix"})[0]
    assert static_of(alone, 9)["log.dirs"] == "/a/brokers/9"


async def test_workers_over_a_store_leave_nothing_to_merge(crew):
    two = crew(["good"], ["good"], horolog_store="s3://bucket/prefix")
    two.begin()
    await two.ready()
    two.supervisor.stop(signal.SIGTERM)
    assert await two.ended() == 0
    assert two.merged == []


async def test_systemd_hears_of_the_whole(crew, monkeypatch):
    said = []
    monkeypatch.setattr(supervisor, "notify", lambda environ, state, status: said.append((dict(environ), state)))
    two = crew(["good"], ["good"])
    two.begin({"NOTIFY_SOCKET": "@x"})
    await two.ready()
    two.supervisor.stop(signal.SIGTERM)
    two.supervisor.stop(signal.SIGTERM)
    assert await two.ended() == 0
    assert said == [({"NOTIFY_SOCKET": "@x"}, "READY=1"), ({"NOTIFY_SOCKET": "@x"}, "STOPPING=1")]


async def test_the_signal_of_the_process_stops_all(crew):
    one = crew(["good"], ["good"])
    one.begin()
    await one.ready()
    os.kill(os.getpid(), signal.SIGTERM)
    assert await one.ended() == 0


class TestWhoEnds:
    async def test_one_that_is_killed_has_a_successor_and_the_others_are_told(self, crew, caplog):
        two = crew(["good"], ["good"])
        two.begin()
        await two.ready()
        killed = two.pid(2)
        os.kill(killed, signal.SIGKILL)
        await two.until(lambda: two.worker(2).starts == 2 and two.worker(2).phase is Phase.READY)
        await two.until(lambda: two.heard(1)[-2:] == ["live [5]", "live [5, 6]"])
        assert two.pid(2) != killed
        assert two.worker(1).starts == 1
        assert two.worker(2).last_absence_s > 0
        assert "worker 2 was ended by SIGKILL" in caplog.text
        assert two.supervisor.phase is Phase.READY

    async def test_a_successor_of_the_first_settles_nothing(self, crew):
        two = crew(["good"], ["good"])
        two.begin()
        await two.ready()
        os.kill(two.pid(1), signal.SIGKILL)
        await two.until(lambda: two.worker(1).starts == 2 and two.worker(1).phase is Phase.READY)
        assert two.plan.orders(5, is_first=False)["context"]["is_first"] is False

    async def test_one_that_leaves_by_itself_is_replaced_too(self, crew):
        two = crew(["good"], ["leaves", "good"])
        two.begin()
        await two.until(lambda: two.worker(2).starts == 2 and two.worker(2).phase is Phase.READY)

    async def test_one_that_ends_again_and_again_is_down_and_tried_again_after_pauses(self, crew, caplog, monkeypatch):
        monkeypatch.setattr(ends, "FIRST_PAUSE_S", 0.5)
        two = crew(["good"], ["good", *["dies"] * ends.MOST_ENDS, "good"], horolog_http_listen="127.0.0.1:0")
        two.begin()
        await two.ready()
        os.kill(two.pid(2), signal.SIGKILL)
        await two.until(lambda: two.worker(2).down is not None)
        assert two.worker(2).starts == ends.MOST_ENDS
        assert two.worker(2).state == worker_process.DOWN
        down = two.worker(2).down
        assert down.next_try_ms > down.since_ms
        reason = f"it has been down since {worker_process.shown(down.since_ms)}, because it ended {ends.MOST_ENDS} times in 60 s"
        assert two.worker(2).why_not_ready.startswith(f"{reason}; it was ended by SIGKILL; next try at ")
        assert "worker 2 has been down since " in caplog.text
        port = two.supervisor._server.port
        status, _, body = await get(port, "/ready")
        assert (status, f"worker 2: {two.worker(2).why_not_ready}" in json.loads(body)["reasons"]) == (503, True)
        status, _, body = await get(port, "/health")
        told = json.loads(body)["down"]["2"]
        assert (status, told["since"], told["reason"]) == (
            503,
            worker_process.shown(down.since_ms),
            "it was ended by SIGKILL",
        )
        await two.until(lambda: two.worker(2).phase is Phase.READY)
        assert two.worker(2).starts == ends.MOST_ENDS + 2
        assert (two.worker(2).down, two.worker(2).down_s) == (None, 0)
        assert two.worker(2).last_absence_s > 0.5 + 1.0, "each pause is longer than the one before"
        assert (await get(port, "/health"))[0] == 200

    async def test_one_that_is_down_is_not_waited_for_at_the_end(self, crew):
        two = crew(["good"], ["good", "dies"])
        two.begin()
        await two.ready()
        os.kill(two.pid(2), signal.SIGKILL)
        await two.until(lambda: two.worker(2).down is not None and two.worker(2).pid is None)
        two.supervisor.stop(signal.SIGTERM)
        assert await two.ended() == 0

    async def test_all_may_be_down_and_are_tried_again(self, crew):
        one = crew(["good", *["dies"] * ends.MOST_ENDS, "good"])
        one.begin()
        await one.ready()
        os.kill(one.pid(1), signal.SIGKILL)
        await one.until(lambda: one.worker(1).starts == ends.MOST_ENDS + 2 and one.worker(1).phase is Phase.READY)

    async def test_where_all_say_that_they_cannot_start_a_new_start_of_all_is_left_to_others(self, crew, caplog):
        one = crew(["good", "fails"])
        one.begin()
        await one.ready()
        os.kill(one.pid(1), signal.SIGKILL)
        assert await one.ended() == 1
        assert "no worker can start" in caplog.text

    async def test_one_that_does_not_answer_is_killed_and_replaced(self, crew, monkeypatch, caplog):
        monkeypatch.setattr(supervisor, "ASK_EVERY_S", 0.05)
        monkeypatch.setattr(tether, "MOST_UNANSWERED", 5)
        two = crew(["good"], ["deaf", "good"])
        two.begin()
        await two.until(lambda: two.worker(2).starts == 2 and two.worker(2).phase is Phase.READY)
        await asyncio.sleep(0.5)
        assert (two.worker(1).starts, two.worker(2).starts) == (1, 2), "who answers is left alone"
        assert "worker 2 has not responded" in caplog.text

    async def test_one_that_is_stopped_is_killed_and_replaced(self, crew, monkeypatch):
        monkeypatch.setattr(supervisor, "ASK_EVERY_S", 0.05)
        monkeypatch.setattr(tether, "MOST_UNANSWERED", 5)
        two = crew(["good"], ["good"])
        two.begin()
        await two.ready()
        os.kill(two.pid(2), signal.SIGSTOP)
        await two.until(lambda: two.worker(2).starts == 2 and two.worker(2).phase is Phase.READY)

    async def test_a_successor_that_cannot_be_started_counts_as_an_end(self, crew, monkeypatch):
        two = crew(["good"], ["good"])
        two.begin()
        await two.ready()

        def refuse(*_, **__):
            raise OSError("no processes left")

        monkeypatch.setattr(worker_process.subprocess, "Popen", refuse)
        os.kill(two.pid(2), signal.SIGKILL)
        await two.until(lambda: two.worker(2).down is not None)
        assert "no processes left" in two.worker(2).why_not_ready


class TestStarts:
    async def test_one_that_cannot_start_ends_all_with_its_words_and_its_code(self, crew, capsys):
        three = crew(["good"], ["fails"], ["fails"])
        three.begin()
        assert await three.ended() == 7
        assert capsys.readouterr().err == "horolog: the port is taken\n"

    async def test_one_that_dies_before_it_is_ready_ends_all(self, crew, capsys):
        two = crew(["never-ready"], ["dies"])
        two.begin()
        assert await two.ended() == 1
        assert capsys.readouterr().err == "horolog: worker 2 was ended by SIGKILL before it was ready\n"

    async def test_one_that_cannot_be_started_at_all_ends_all(self, crew):
        two = crew(["good"], ["good"])
        command = two.command
        two.command = lambda number, descriptor: ["/no/such/program"] if number == 2 else command(number, descriptor)
        two.begin()
        with pytest.raises(FileNotFoundError):
            await two.ended()
        assert two.worker(1).pid is None

    async def test_a_port_for_watching_that_is_taken_ends_all(self, crew):
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        two = crew(["good"], ["good"], horolog_http_listen=f"127.0.0.1:{port}")
        two.begin()
        with pytest.raises(OSError, match="in use"):
            await two.ended()
        server.close()


class TestEnds:
    async def test_one_that_ends_badly_is_told_by_the_exit_code(self, crew, caplog):
        two = crew(["good"], ["ends-badly"])
        two.begin()
        await two.ready()
        two.supervisor.stop(signal.SIGTERM)
        assert await two.ended() == 1
        assert "worker 2 did not stop cleanly: it ended with code 3" in caplog.text
        assert two.merged == [[str(two.folder)]]

    async def test_one_that_is_just_starting_is_not_waited_for_to_end_well(self, crew):
        two = crew(["good"], ["good", "never-ready"])
        two.begin()
        await two.ready()
        os.kill(two.pid(2), signal.SIGKILL)
        await two.until(lambda: two.worker(2).starts == 2)
        two.supervisor.stop(signal.SIGTERM)
        assert await two.ended() == 0

    async def test_workers_end_with_their_supervisor(self, crew):
        """Of its link's end: what the system does besides is in the tests of real processes."""
        one = crew(["good"])
        one.begin()
        await one.ready()
        pid = one.pid(1)
        one.worker(1).tether._transport.abort()
        await until(lambda: not is_running(pid))


class TestPassingOn:
    async def test_what_one_writes_the_others_apply_and_it_hears_of_it(self, crew):
        three = crew(["good"], ["writes"], ["good"])
        three.begin()
        await three.ready()
        await three.until(lambda: {"applied 5 41", "applied 7 41"} <= set(three.heard(2)))
        assert "journal 41" in three.heard(1)
        assert "journal 41" in three.heard(3)
        assert "journal 41" not in three.heard(2)

    async def test_without_a_backup_an_end_of_logs_is_not_heard(self, crew):
        two = crew(["good"], ["good"])
        two.begin()
        await two.ready()
        two.worker(1).ends(1, [])
        assert (two.supervisor.standstills, two.supervisor.backup_figures()) == (None, None)


class TestRun:
    @pytest.fixture
    def settings(self, tmp_path):
        given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "d")}
        return load(None, {}, given)[0]

    def test_everything_shared_is_taken_and_given_back(self, settings, monkeypatch, tmp_path, caplog):
        seen = []

        def look(plan):
            seen.append(plan)
            with pytest.raises(FolderInUse, match="in use by another broker"):
                FolderLocks(plan.data_dirs)
            assert Path(plan.sockets).is_dir()

        async def serve(plan):
            look(plan)
            return 0

        monkeypatch.setattr(supervisor, "_serve", serve)
        with caplog.at_level("INFO"):
            assert supervisor.run(settings, ["odd setting"], 3) == 0
        (plan,) = seen
        assert plan.nodes == (1, 2, 3)
        assert len(plan.reserved.listeners[0].own) == 3
        assert not Path(plan.sockets).exists()
        FolderLocks(plan.data_dirs).release()
        assert "odd setting" in caplog.text
        assert "3 workers" in caplog.text

    def test_a_folder_in_use_is_told_and_nothing_is_started(self, settings, monkeypatch, capsys):
        locks = FolderLocks(map(str, settings.data_folders))
        monkeypatch.setattr(supervisor, "_serve", None)
        assert supervisor.run(settings, [], 2) == 1
        locks.release()
        assert "is in use by another broker" in capsys.readouterr().err.splitlines()[-1]


def test_a_merge_that_fails_is_left_to_the_next_start(monkeypatch, caplog):
    asked = []

    def settle(storage, paths):
        asked.append((type(storage), paths))
        raise StorageFault("no space")

    monkeypatch.setattr(settling, "merge", settle)
    supervisor.merge(["/d"])
    assert asked == [(RealStorage, ["/d"])]
    assert "no space" in caplog.text
