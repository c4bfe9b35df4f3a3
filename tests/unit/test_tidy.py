"""The tree stays tidy: small classes, few arguments, and lists of exceptions that hold nothing that is none."""

import ast
import textwrap

import pytest

from tests.support import style, tidy

PACKAGES = style.PROJECT / "horolog"


def trees():
    """The modules of the product by their paths below `horolog`."""
    paths = [path for path in style.python_files() if PACKAGES in path.parents]
    return {str(path.relative_to(PACKAGES)): ast.parse(path.read_bytes()) for path in paths}


@pytest.fixture(scope="module")
def modules():
    return trees()


def parsed(text):
    return ast.parse(textwrap.dedent(text))


MANY_METHODS = {
    "broker/log/partition/partition.py: Partition": "retention, look-ups and closing are about to leave it",
    "broker/log/partition/sync_state.py: SyncState": "one short method for each word that its threads say to each other",
    "broker/log/segments/segment.py: Segment": "indexes and recovery are about to leave it",
    "broker/transactions/coordinator.py: TransactionCoordinator": "its seams to more than one process are about to be cut",
}


def test_classes_have_few_methods(modules):
    found = [(path, one) for path, tree in modules.items() for one in tidy.methods(tree)]
    large = {f"{path}: {one.name}" for path, one in found if one.amount > tidy.MAX_METHODS}
    assert large == MANY_METHODS.keys(), "split the class by its nouns; take what is no exception any more off the list"


def test_every_def_of_a_class_counts():
    tree = parsed("""
        class Outer:
            class Inner:
                def a(self): ...

            size = 1

            def __init__(self): ...

            @property
            def b(self): ...

            @b.setter
            def b(self, value): ...

            async def c(self):
                def inner(): ...

            if size:
                def d(self): ...

        def loose(): ...
    """)
    assert sorted(tidy.methods(tree)) == [("Inner", 1), ("Outer", 4)]


CLOCK_OWNERS = {
    "broker/clock.py": "the clock that everything in the broker is given",
    "broker/log/storage/storage.py": "the file system dates files by the machine's clock",
    "broker/observability/logs.py": "lines are logged before there is a broker with a clock",
    "broker/observability/loop_lag.py": "it measures the event loop by the loop's own clock",
    "client/cli/": "a command tells its user how long something took",
    "pipeline/": "a job is a process of its own, beside Spark, and no broker's clock reaches it",
    "testing/clock.py": "the clock of an embedded broker goes with the machine's until it is set",
}
"""Modules, and folders of modules, that may read a clock of the machine."""


def owner_of(path):
    return next((one for one in CLOCK_OWNERS if path == one or (one.endswith("/") and path.startswith(one))), None)


def test_a_clock_is_given(modules):
    reads = {path: list(tidy.clock_reads(tree)) for path, tree in modules.items()}
    found = {path: names for path, names in reads.items() if names}
    assert {path: names for path, names in found.items() if owner_of(path) is None} == {}, "pass the clock"
    assert CLOCK_OWNERS.keys() == {owner_of(path) for path in found}, (
        "some read no clock any more: take them off the list"
    )


@pytest.mark.parametrize(
    "line",
    [
        "began = time.monotonic()",
        "def f(now=time.time): ...",
        "from time import sleep, perf_counter_ns",
        "datetime.datetime.now(UTC)",
        "due = self._loop.time() + 1",
        "asyncio.get_running_loop().time()",
    ],
)
def test_reads_of_a_clock_are_found(line):
    assert len(list(tidy.clock_reads(ast.parse(line)))) == 1


@pytest.mark.parametrize(
    "line", ["clock.monotonic()", "self._clock.now()", "from time import sleep", "record.time", "time.sleep(1)"]
)
def test_a_clock_that_was_given_is_no_read(line):
    assert not list(tidy.clock_reads(ast.parse(line)))
