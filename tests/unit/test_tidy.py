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
    "broker/cluster.py: Cluster": "its seams to more than one process are about to be cut",
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
