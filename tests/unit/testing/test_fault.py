"""One fault: its end, its count, and how it is told."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.testing.fault import REFUSE, Fault
from horolog.testing.fault_scope import Scope


def test_it_is_spent_after_so_many_hits():
    fault = Fault(REFUSE, Scope(times=2))
    spent = []
    fault.on_spent = lambda: spent.append(fault.hits)
    fault.hit()
    assert fault.is_armed
    fault.hit()
    assert (spent, fault.is_armed) == ([2], False)
    assert "2 hits, over" in repr(fault)


def test_it_ends_with_its_block_also_where_that_fails():
    ended = []

    def block():
        with Fault(REFUSE, Scope()) as fault:
            fault.on_end = lambda: ended.append(fault)
            raise KeyError

    with pytest.raises(KeyError):
        block()
    assert len(ended) == 1
    assert "armed" in repr(ended[0])


def test_it_is_shown_as_json():
    fault = Fault(REFUSE, Scope(frozenset({ApiKey.PRODUCE}), "t", 1, "c"), error=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert fault.as_json() == {
        "id": 0,
        "kind": "refuse",
        "apis": ["PRODUCE"],
        "topic": "t",
        "partition": 1,
        "client_id": "c",
        "error": "NOT_ENOUGH_REPLICAS",
        "hits": 0,
        "armed": True,
    }
    assert Fault(REFUSE, Scope()).as_json()["apis"] is None
