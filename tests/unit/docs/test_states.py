"""The page of states is drawn from the tables in the code: it cannot say anything else."""

import re

import pytest

from horolog.broker.groups import classic_group
from horolog.broker.transactions import states
from tests.support.style import PROJECT
from tools import state_diagrams
from tools.pages import END, filled

PAGE = (PROJECT / "docs" / "states.md").read_text("utf-8")
STALE = "`make docs` writes docs/states.md anew"


def arrows(mark):
    """The steps that a diagram of the page shows, by the names of their states."""
    drawn = PAGE.partition(mark)[2].partition(END)[0]
    found = re.findall(r"^ +(\S+) --> (\S+)$", drawn, re.MULTILINE)
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize(
    ("mark", "kinds", "comes_from", "name"),
    [
        ("<!-- classic group -->", classic_group.GroupState, classic_group.COMES_FROM, lambda state: state.value),
        ("<!-- transaction -->", states.TransactionState, states.COMES_FROM, lambda state: state.title),
    ],
)
def test_each_step_of_a_table_is_one_arrow_and_no_other(mark, kinds, comes_from, name):
    steps = {(name(before), name(to)) for to in kinds for before in comes_from[to]}
    assert arrows(mark) == steps | {("[*]", "Empty")}, STALE


@pytest.mark.parametrize(
    ("module", "kinds"), [(classic_group, classic_group.GroupState), (states, states.TransactionState)]
)
def test_another_table_is_another_page(module, kinds, monkeypatch):
    changed = dict(module.COMES_FROM)
    changed[kinds.EMPTY] = frozenset(kinds)
    monkeypatch.setattr(module, "COMES_FROM", changed)
    assert filled("states.md", PAGE) != PAGE


def test_another_answer_is_another_page(monkeypatch):
    changed = dict.fromkeys(classic_group.GroupState, state_diagrams.ErrorCode.NONE)
    monkeypatch.setattr(state_diagrams.classic, "HEARTBEAT", changed)
    assert filled("states.md", PAGE) != PAGE
