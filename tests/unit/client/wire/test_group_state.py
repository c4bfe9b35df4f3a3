"""What errors do to a membership."""

import pytest

from horolog.client.wire.group_state import NO_GENERATION, MemberState, Step
from horolog.protocol.errors import ErrorCode


def member():
    state = MemberState()
    state.joined("m-1", 4, "range", is_leader=False)
    state.synced()
    return state


@pytest.mark.parametrize(
    ("code", "step", "member_id", "generation", "lost"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, Step.JOIN_AGAIN, "m-1", 4, False),
        (ErrorCode.MEMBER_ID_REQUIRED, Step.JOIN_AGAIN, "m-1", 4, False),
        (ErrorCode.ILLEGAL_GENERATION, Step.JOIN_ANEW, "m-1", NO_GENERATION, True),
        (ErrorCode.UNKNOWN_MEMBER_ID, Step.JOIN_ANEW, "", NO_GENERATION, True),
        (ErrorCode.NOT_COORDINATOR, Step.TRY_AGAIN, "m-1", 4, False),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Step.TRY_AGAIN, "m-1", 4, False),
        (ErrorCode.FENCED_INSTANCE_ID, Step.GIVE_UP, "m-1", 4, False),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, Step.GIVE_UP, "m-1", 4, False),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, Step.GIVE_UP, "m-1", 4, False),
    ],
)
def test_errors(code, step, member_id, generation, lost):
    state = member()
    assert state.after(code, retriable=code.retriable) == step
    assert (state.member_id, state.generation, state.lost) == (member_id, generation, lost)


def test_a_member_that_never_was_one_loses_nothing():
    state = MemberState(member_id="m-1")
    assert state.after(ErrorCode.UNKNOWN_MEMBER_ID, retriable=False) == Step.JOIN_ANEW
    assert not state.lost


def test_what_was_lost_stays_lost_until_there_is_an_assignment():
    state = member()
    state.left()
    state.joined("m-2", 6, "range", is_leader=True)
    assert state.lost
    assert not state.is_stable
    state.synced()
    assert not state.lost
    assert state.is_stable
