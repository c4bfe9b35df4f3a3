"""In a notebook lines of workers and progress stand below the cell; elsewhere they go to standard error."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from horolog.pipeline.spark import notebook, notes
from tests.interop import toolchains
from tests.pipeline.clusters import SETTINGS, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.style import PROJECT

LOOK = Path(__file__).with_name("notebook_look.py")
WAIT_SECONDS = 60


class Shell:
    """IPython's, as far as it is asked."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.events = self
        self.registered = {}

    def register(self, event, call):
        self.registered[event] = call


@pytest.fixture
def shown(tmp_path):
    written = []
    made = notebook.Notebook(str(tmp_path / "notes"), written.append)
    yield made, written
    made.end()
    made._socket.close()


def until(holds):
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_line_goes_to_standard_error_unless_a_notebook_listens(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv(notes.SOCKET, raising=False)
    notes.say("one")
    monkeypatch.setenv(notes.SOCKET, str(tmp_path / "gone"))
    notes.say("two")
    assert capsys.readouterr().err == "one\ntwo\n"


def test_lines_stand_below_the_cell_that_is_at_work(monkeypatch, capsys, shown, tmp_path):
    made, written = shown
    monkeypatch.setenv(notes.SOCKET, str(tmp_path / "notes"))
    made.begin()
    notes.say("reads 2 segments")
    until(lambda: written)
    notes.say("the last one")
    made.end()
    assert written == ["reads 2 segments\n", "the last one\n"]
    made.end()
    assert capsys.readouterr().err == ""


def test_a_cell_that_takes_long_shows_progress_and_clears_it(monkeypatch, shown):
    made, written = shown
    monkeypatch.setattr(notebook, "_QUICK_SECONDS", 0.0)
    answers = iter([(1, 1200), None])
    made.tasks = lambda: next(answers)  # and then a fault, as from a Spark that ends
    made.begin()
    until(lambda: written)
    until(lambda: next(answers, "over") == "over")
    made.end()
    assert written[0] == "\rhorolog: 1 of 1,200 tasks"
    assert written[-1] == "\r" + " " * 25 + "\r"


def test_only_a_kernel_is_a_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert notebook.shell_of_notebook() is None
    assert notebook.listen(lambda: pytest.fail("no folder is needed")) is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: Shell(None)))
    assert notebook.shell_of_notebook() is None


def test_a_notebook_is_listened_for_once(monkeypatch, tmp_path):
    shell = Shell(object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(notebook, "_listening", None)
    monkeypatch.setenv(notes.SOCKET, "")
    made = notebook.listen(lambda: str(tmp_path))
    try:
        assert notebook.listen(lambda: str(tmp_path)) is made
        assert os.environ[notes.SOCKET] == str(tmp_path / "notes")
        assert shell.registered == {"pre_run_cell": made.begin, "post_run_cell": made.end}
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(str(tmp_path / "notes"))
    finally:
        made.end()
        made._socket.close()


def test_tasks_are_those_of_the_stages_at_work():
    stages = {1: SimpleNamespace(numCompletedTasks=3, numTasks=8), 2: None}
    tracker = SimpleNamespace(getActiveStageIds=lambda: [1, 2], getStageInfo=stages.get)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    assert notebook.tasks_of(spark) == (3, 8)
    stages[1] = None
    assert notebook.tasks_of(spark) is None
    assert notebook.tasks_of(SimpleNamespace()) is None


def kernel_packages():
    """A folder with ipykernel for this Python, beside everything else that it has."""

    def install(folder):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        toolchains.build([*pip, "--target", str(folder), "ipykernel", "jupyter_client"], folder.parent)

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return toolchains.whole_folder(toolchains.cache_dir() / "spark" / f"ipykernel-{version}", install)
    except (toolchains.BuildFailedError, subprocess.TimeoutExpired) as fault:
        pytest.skip(f"ipykernel cannot be had: {str(fault)[-300:]}")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_kernel_of_jupyter_shows_what_was_read_below_the_cell(tmp_path):
    pytest.importorskip("pyspark")
    packages = kernel_packages()
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    environ = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{packages}", "IPYTHONDIR": str(tmp_path / "ipython")}
    try:
        create(broker, "t")
        fill(broker, "t", count=90)
        command = [sys.executable, str(LOOK), broker.address, str(broker.data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=800, env=environ, check=False)
    finally:
        broker.stop()
    assert done.returncode == 0, done.stderr[-3000:]
    session, files, filtered, slow, ending = json.loads(done.stdout.strip().splitlines()[-1])
    assert [each["error"] for each in (session, files, filtered, slow, ending)] == [""] * 5
    assert "only showing top 1 row" in files["stdout"]
    assert left_of(files["stderr"]).startswith(f"horolog: {broker.data}: reads 3 segments, ")
    assert files["stderr"].count("\n") == 1
    assert "reads 15 offsets, skips 75 by filters" in filtered["stderr"]
    assert "horolog: 1 of 4 tasks" in slow["stderr"]
    assert slow["stderr"].endswith("\r")


def left_of(text):
    """The text without the progress that was overwritten: a slow machine shows some for every cell."""
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def test_a_cell_without_tasks_shows_no_progress(monkeypatch, shown):
    made, written = shown
    monkeypatch.setattr(notebook, "_QUICK_SECONDS", 0.0)
    asked = []
    made.tasks = lambda: asked.append(1)
    made.begin()
    until(lambda: len(asked) > 1)
    made.end()
    assert written == []


def test_a_cell_that_is_done_soon_is_not_asked_for_its_tasks(monkeypatch, shown):
    made, written = shown
    monkeypatch.setattr(notebook, "_QUICK_SECONDS", 3600.0)
    monkeypatch.setenv(notes.SOCKET, made._socket.getsockname())
    asked = []
    made.tasks = lambda: asked.append(1)
    made.begin()
    notes.say("a line")
    until(lambda: written)
    made.end()
    assert (written, asked) == (["a line\n"], [])


def test_a_line_goes_to_the_standard_error_of_the_cell(capsys):
    notebook._to_this_cell("a line\n")
    assert capsys.readouterr().err == "a line\n"
