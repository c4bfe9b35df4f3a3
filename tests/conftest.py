"""What every test may ask for, how hard property tests look, and which tests this machine cannot run."""

import gc
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from benchmarks.kafka.node import FLAGS_VARIABLE
from tests.support import forking, rewriting, sampling, style
from tests.support.broker_process import BROKERS_VARIABLE, WORKERS_VARIABLE
from tests.support.dealing import dealt
from tests.support.fixtures import broker, session_broker, start_broker
from tests.support.sampling import Share
from tools import compiled

__all__ = ["broker", "session_broker", "start_broker"]

# HYPOTHESIS_PROFILE=searching, which `make search` takes, looks twenty times as long at examples of a new seed; steady, which .ci/run takes,
# looks at the same examples every time, so that a run says of a change what the last run said. No deadlines: a busy machine is no
# fault of the code.
hypothesis.settings.register_profile("quick", max_examples=50, deadline=None)
hypothesis.settings.register_profile("searching", max_examples=1000, deadline=None, print_blob=True)
hypothesis.settings.register_profile("steady", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell that runs this in the background has Ctrl-C ignored, and so would every program that tests start and stop by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules and brokers that tests start find compiled files, whatever the shell says: to compile all of a broker's takes longer than its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Here other programs and the machine take part, with time limits of their own: a test that fails is run once more, and pytest
# counts and names it. Our own code alone gets no second chance.
WITH_OTHERS = {"container", "hostile", "interop", "performance", "pipeline", "soak"}

# Kafkas beside ours are asked what they answer: one that is compiled lightly is up with half the work.
os.environ.setdefault(FLAGS_VARIABLE, "-XX:TieredStopAtLevel=1")

COLLECTIONS = 5
GARBAGE_THRESHOLDS = 20_000, 20, 10
"""Python looks for garbage every 700 objects, and a test process with all tests in it paid a tenth of its processor time for that."""
BEFORE = pytest.StashKey[Path]()
"""The file of the test before."""

STYLE = "style"
TOLD = pytest.StashKey[str]()
"""The style figures, in what a worker puts out and in what the process keeps that has started it."""

BEGAN = pytest.StashKey[float]()
"""When the tests were collected."""
FAILED: list[str] = []

TOOL_OF_MARK = {"java": "java", "node": "node", "go": "go"}


@pytest.fixture(scope="session", autouse=True)
def syncs_do_not_wait() -> Iterator[None]:
    """What tests of one process write on this disk need not outlive the machine: power is cut in memory, or under brokers of their own.

    Those are processes, and sync as ever. Here a sync only asks whether the descriptor is open: a third of the golden tests went by in waiting for it.
    """
    with pytest.MonkeyPatch.context() as patched:
        for name in ("fsync", "fdatasync"):
            patched.setattr(os, name, os.fstat)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Twelve thousand tests and their modules stay to the end: no look for garbage while they are made, and none among them later."""
    gc.disable()
    try:
        rewriting.share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, help="broker processes have so many workers, unless the test says otherwise"
    )
    parser.addoption("--brokers", type=int, help="so many brokers over one store take the place of each broker process")
    parser.addoption("--part-of", metavar="SEED", help="run a share of the tests, chosen by this seed")
    parser.addoption("--parts", type=int, default=sampling.PARTS, help="one test in so many belongs to a share")
    parser.addoption("--cases-of", metavar="SEED", default="1", help="choose the cases of tests marked one_in, or all")
    parser.addoption("--always", action="append", default=[], metavar="FILE", help="run these tests besides a share")
    parser.addoption("--seconds", type=float, help="skip tests that would begin later than that")
    parser.addoption("--keep-found", action="store_true", help="note tests that fail in tests/found_tests.txt")


def pytest_configure(config: pytest.Config) -> None:
    """A compiled module that is older than its source would be tested in its stead."""
    workers = config.getoption("--workers")
    if workers is not None:
        os.environ[WORKERS_VARIABLE] = str(workers)
    brokers = config.getoption("--brokers")
    if brokers is not None:
        os.environ[BROKERS_VARIABLE] = str(brokers)
    stale = compiled.outdated()
    if stale:
        raise pytest.UsageError(
            f"compiled before the last change: {', '.join(map(str, stale))}; run `make compiled` or `make plain`"
        )


def skip_where_there_are_several(items: list[pytest.Item], mark: str) -> None:
    for item in items:
        found = item.get_closest_marker(mark)
        if found is not None:
            item.add_marker(pytest.mark.skip(reason=f"{mark.replace('_', ' ')}: {found.args[0]}"))


@cache
def is_with_others(path: Path) -> bool:
    here = Path(__file__).parent
    return path.is_relative_to(here) and path.relative_to(here).parts[0] in WITH_OTHERS


@cache
def is_of_one_module(path: Path) -> bool:
    return path.is_relative_to(Path(__file__).parent / "unit")


def processes(config: pytest.Config) -> int:
    """How many share this run."""
    return int(getattr(config, "workerinput", {}).get("workercount", 1))


def collect_what_others_left(item: pytest.Item) -> None:
    """Clients that are cancelled while they stop leave connections, which the log of their test holds until its end.

    Python would report them in a test of another module. One object's finalizer frees the next, so one collection is not enough.
    """
    before = item.config.stash.get(BEFORE, item.path)
    item.config.stash[BEFORE] = item.path
    if before != item.path and is_with_others(before):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            for _ in range(COLLECTIONS):
                gc.collect()
        gc.freeze()  # objects alive now stay, and would make the next collections take seconds


def share_of(config: pytest.Config) -> Share:
    always = frozenset((*config.getoption("--always"), *sampling.found()))
    return Share(config.getoption("--part-of"), config.getoption("--parts"), cases_seed(config), always)


def cases_seed(config: pytest.Config) -> str | None:
    """What chooses among the cases of a test; where the command line names a test, nothing does."""
    seed = config.getoption("--cases-of")
    return None if seed == "all" or any("::" in word for word in config.args) else seed


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests away that the options leave out; where the time may not suffice for the others, puts them in the order of the seed."""
    share = share_of(config)
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("one_in")
        (kept if share.has(item.nodeid, 1 if mark is None else mark.args[0]) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    if config.getoption("--seconds") is not None:
        kept.sort(key=lambda item: share.place(item.nodeid))
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before anything is made for a test: whether there is time for it."""
    collect_what_others_left(item)
    seconds = item.config.getoption("--seconds")
    if seconds is not None and time.monotonic() > item.config.stash[BEGAN] + seconds:
        pytest.skip(f"left out: {seconds:.0f} s have gone by")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:  # one that passes at its second go has another outcome
        FAILED.append(report.nodeid)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test whose toolchain is not there is skipped, and pytest says so."""
    config.stash[BEGAN] = time.monotonic()
    leave_out(config, items)
    for mark, tool in TOOL_OF_MARK.items():
        if shutil.which(tool) is None:
            for item in items:
                if item.get_closest_marker(mark) is not None:
                    item.add_marker(pytest.mark.skip(reason=f"{tool} is not installed"))
    if config.getoption("--workers") not in {None, 1}:
        skip_where_there_are_several(items, "one_worker")
    if config.getoption("--brokers") is not None:
        skip_where_there_are_several(items, "one_worker")
        skip_where_there_are_several(items, "one_broker")
    for item in items:
        if is_with_others(item.path) or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if config.getoption("--seconds") is None:
        items[:] = dealt(items, processes(config), lambda item: not is_of_one_module(item.path), lambda item: item.path)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker whose tests have read every file tells the style figures: to read them all again takes seconds."""
    forking.end()
    output = getattr(session.config, "workeroutput", None)
    if output is None and session.config.getoption("--keep-found"):
        sampling.keep(FAILED)
    if output is not None and style.facts.cache_info().currsize >= len(style.python_files()):
        output[STYLE] = style.summary()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    told = getattr(node, "workeroutput", {}).get(STYLE)
    if told is not None:
        node.config.stash[TOLD] = told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Why a test passed only at its second go, and the style figures, so that every run of all tests shows where they drift."""
    for report in terminalreporter.stats.get("rerun", ()):
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            terminalreporter.section(f"first go of {report.nodeid}", "_")
            terminalreporter.write_line(report.longreprtext)
            terminalreporter.write_line(f"RERUN {report.nodeid} - {crash.message.splitlines()[0]}")
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly:
        terminalreporter.write_line(config.stash.get(TOLD, None) or style.summary())
