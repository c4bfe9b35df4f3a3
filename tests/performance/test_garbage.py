"""Requests leave no circles of references: these would hold records in memory until the next collection of garbage.

Compiled code makes one of each function in a function. Run with compiled modules, this test finds them.
"""

import gc

import pytest

from benchmarks import inside

REQUESTS = 50


@pytest.mark.parametrize("name", sorted(inside.CASES))
def test_a_request_leaves_no_garbage(name):
    with inside.inside() as at:
        _, _, prepare = inside.CASES[name]
        step = prepare(at)
        for _ in range(3):
            step()
        gc.collect()
        gc.disable()
        try:
            for _ in range(REQUESTS):
                step()
            assert gc.collect() < REQUESTS
        finally:
            gc.enable()
