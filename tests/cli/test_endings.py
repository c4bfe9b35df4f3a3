"""How commands that talk to a broker end when somebody ends them: a real process each, a broker, and the traces that are left."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from horolog.commands.exit_codes import ExitCode
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

WAIT_SECONDS = 60
ENDINGS = [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]

each_ending = pytest.mark.parametrize(("told", "code"), ENDINGS, ids=["ctrl-c", "sigterm"])


@pytest.fixture
def run(horolog, session_broker: BrokerProcess) -> Callable:
    return lambda *words: horolog(*words, "--bootstrap", session_broker.address, "--timeout", "30s")


@pytest.fixture
def start(session_broker: BrokerProcess):
    """A command as a process of its own; whatever happens, none is left."""
    started = []

    def begin(*words) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "horolog", *words, "--bootstrap", session_broker.address]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=PROJECT))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def topic(run) -> str:
    name = unique("ends")
    assert run("topics", "create", name).code == 0
    return name


def end(process: subprocess.Popen[bytes], told: signal.Signals) -> tuple[int, bytes]:
    process.send_signal(told)
    _, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, errors


@each_ending
def test_a_member_leaves_its_group(run, start, topic, tmp_path, told, code):
    lines = tmp_path / "lines"
    lines.write_text("one\n")
    assert run("produce", topic, lines).code == 0
    group = unique("group")
    process = start("consume", topic, "--group", group, "--follow")
    assert b"one" in process.stdout.readline()
    wait_until(lambda: [each["committed"] for each in run("groups", "lag", group, "-o", "json").json] == [1])
    assert end(process, told) == (code, b"")
    (described,) = run("groups", "describe", group, "-o", "json").json
    assert (described["state"], described["members"]) == ("Empty", [])


@each_ending
def test_a_benchmark_takes_its_topic_away(run, start, told, code):
    def topics() -> set[str]:
        return {each["topic"] for each in run("topics", "list", "-o", "json").json if "bench" in each["topic"]}

    before = topics()
    process = start("bench", "produce", "--records", "100000000")
    wait_until(lambda: topics() - before)
    assert end(process, told) == (code, b"")
    assert topics() == before


@each_ending
def test_what_was_sent_before_is_written(run, start, topic, told, code):
    """Standard input is still open: only the signal ends it."""
    process = start("produce", topic)
    process.stdin.write(b"first\nsecond\n")
    process.stdin.flush()
    wait_until(lambda: len(run("consume", topic, "-o", "json").lines) == 2)
    process.send_signal(told)
    errors = process.stderr.read()
    assert (process.wait(WAIT_SECONDS), errors) == (code, b"")


@pytest.fixture
def ask(session_broker: BrokerProcess, topic):
    """A deletion that asks at a terminal, and the terminal's other end; what it asked has been read."""
    own, terminal = pty.openpty()
    command = [sys.executable, "-m", "horolog", "topics", "delete", topic, "--bootstrap", session_broker.address]
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
    process = subprocess.Popen(command, cwd=PROJECT, **streams)
    os.close(terminal)
    asked = b""
    while not asked.endswith(b"[y/N] "):
        asked += os.read(own, 1000)
    yield process, own
    process.kill()
    process.wait()
    os.close(own)


@each_ending
def test_a_question_is_no_trap(run, ask, topic, told, code):
    process, _ = ask
    process.send_signal(told)
    assert process.wait(WAIT_SECONDS) == code
    assert run("topics", "describe", topic).code == 0


@pytest.mark.parametrize(("answer", "is_there"), [(b"\n", True), (b"n\n", True), (b"\x04", True), (b" Yes\n", False)])
def test_only_a_yes_is_a_yes(run, ask, topic, answer, is_there):
    process, terminal = ask
    os.write(terminal, answer)
    assert process.wait(WAIT_SECONDS) == (ExitCode.FAILED if is_there else ExitCode.OK)
    assert (run("topics", "describe", topic).code == 0) is is_there


@each_ending
def test_a_command_in_another_thread_takes_no_signals(run, topic, told, code):
    """Nobody may set handlers there: it works all the same, and those of the process stay as they were."""
    before = signal.getsignal(told)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(run("consume", topic, "-o", "json").code))
    thread.start()
    thread.join(WAIT_SECONDS)
    assert ended == [0]
    assert signal.getsignal(told) is before
