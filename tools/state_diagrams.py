"""The parts of docs/states.md that come from the program: the states of groups and transactions, drawn from their tables."""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from horolog.broker.groups import classic, classic_group
from horolog.broker.transactions import states
from horolog.protocol.errors import ErrorCode

S = TypeVar("S", bound=Enum)


def diagram(names: Mapping[S, str], comes_from: Mapping[S, frozenset[S]], first: S) -> str:
    """A Mermaid state diagram of every step that a table knows, in the order of the states; states without any are left out."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {names[first]}"]
    lines += [f"    {names[before]} --> {names[to]}" for before in names for to in names if before in comes_from[to]]
    return "\n".join([*lines, "```"]) + "\n"


def classic_diagram() -> str:
    names = {state: state.value for state in classic_group.GroupState}
    return diagram(names, classic_group.COMES_FROM, classic_group.GroupState.EMPTY)


def transaction_diagram() -> str:
    names = {state: state.title for state in states.TransactionState}
    return diagram(names, states.COMES_FROM, states.TransactionState.EMPTY)


def classic_answers() -> str:
    rows = [
        f"| {state.value} | {_told(classic.HEARTBEAT[state])} | {_told(classic.SYNC[state])} |"
        for state in classic_group.GroupState
    ]
    return "\n".join(["| state | Heartbeat | SyncGroup |", "|---|---|---|", *rows]) + "\n"


def _told(code: ErrorCode) -> str:
    return code.name if code else "no error"
