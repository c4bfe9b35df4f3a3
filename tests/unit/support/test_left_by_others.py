"""What other clients leave is collected at the end of their module, and not reported in a test of another one."""

import gc
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parents[2]
OTHERS, OTHERS_TOO, OURS = TESTS / "interop" / "test_a.py", TESTS / "soak" / "test_b.py", TESTS / "unit" / "test_c.py"


class Connection:
    """Left in a cycle; its finalizer warns, and drops the one that it kept from being collected."""

    def __init__(self, chain, number):
        self.me = self
        self._chain, self._number = chain, number

    def __del__(self):
        warnings.warn(f"connection {self._number} was not closed", ResourceWarning, stacklevel=1)
        self._chain.closed.append(self._number)
        if self._chain.kept:
            self._chain.kept.pop()


class Chain:
    """The first connection is garbage; each of the others becomes garbage with the finalizer of the one before."""

    def __init__(self, length):
        self.closed = []
        self.kept = [Connection(self, number) for number in range(length, 1, -1)]
        Connection(self, 1)


@pytest.fixture
def conftest(pytestconfig):
    return pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))


@pytest.fixture
def chain(conftest):
    """Nothing but the code under test collects it."""
    gc.collect()
    gc.disable()
    yield Chain(conftest.COLLECTIONS)
    gc.enable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(conftest.COLLECTIONS):
            gc.collect()


def run(conftest, *paths):
    """The tests of these files begin, one after the other; returns what Python has warned of meanwhile."""
    config = SimpleNamespace(stash=pytest.Stash())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for path in paths:
            conftest.collect_what_others_left(SimpleNamespace(config=config, path=path))
    return warned


@pytest.mark.parametrize("following", [OURS, OTHERS_TOO])
def test_a_chain_of_connections_is_collected_without_a_word_before_the_next_module(conftest, chain, following):
    assert run(conftest, OTHERS, following) == []
    assert chain.closed == list(range(1, conftest.COLLECTIONS + 1))


@pytest.mark.parametrize(
    "paths", [(OTHERS,), (OTHERS, OTHERS), (OURS, OTHERS), (OURS, OURS), (Path("/elsewhere.py"), OURS)]
)
def test_within_a_module_and_behind_our_own_nothing_is(conftest, chain, paths):
    assert run(conftest, *paths) == []
    assert chain.closed == []


def test_only_the_module_right_before_counts(conftest, chain):
    run(conftest, OTHERS, OURS)
    closed = len(chain.closed)
    again = Chain(1)
    run(conftest, OURS, OURS)
    assert (closed, again.closed) == (conftest.COLLECTIONS, [])


def test_what_has_survived_is_not_looked_at_again(conftest, chain):
    survivors = [[] for _ in range(1000)]
    before = gc.get_freeze_count()
    run(conftest, OTHERS, OURS)
    assert gc.get_freeze_count() - before >= len(survivors)


def test_our_own_tests_still_hear_of_theirs(conftest, chain):
    run(conftest, OTHERS, OURS)
    Chain(1)
    with pytest.warns(ResourceWarning, match="connection 1 was not closed"):
        gc.collect()
