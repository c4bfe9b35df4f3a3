"""What Ctrl-C and SIGTERM do to a process of ours, and that they are left alone in a process of somebody else's."""

import gc
import signal

import pytest

from horolog.base import interrupts


@pytest.fixture
def ours(monkeypatch):
    """A process of ours, whose handlers are put back at the end; what ends it is noted instead."""
    ended = []
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    threshold = gc.get_threshold()
    monkeypatch.setattr(interrupts, "_is_ours", True)
    monkeypatch.setattr("horolog.base.interrupts.os._exit", ended.append)
    yield ended
    for number, handler in before.items():
        signal.signal(number, handler)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_either_signal_ends_a_process_of_ours_with_the_code_that_shells_give(ours, number, code):
    interrupts.own_process()
    signal.raise_signal(number)
    assert ours == [code]


def test_a_process_of_ours_looks_for_garbage_behind_its_imports_and_not_in_between(ours):
    interrupts.own_process()
    assert gc.isenabled()
    assert gc.get_threshold() == interrupts.COLLECTIONS_AT_START


def test_what_has_something_to_clean_up_gets_ctrl_c_as_an_exception(ours):
    interrupts.end_at_once()
    interrupts.raise_interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not ours


def test_ctrl_c_where_an_exception_would_be_swallowed_ends_the_process(ours):
    interrupts.raise_interrupts()
    scope = {"raise_signal": signal.raise_signal, "number": signal.SIGINT}
    exec(compile("def cb(_): raise_signal(number)", "<frozen importlib._bootstrap>", "exec"), scope)
    with pytest.raises(KeyboardInterrupt):  # as nothing has ended this process
        scope["cb"](None)
    assert ours == [130]


def test_neither_counts_once_all_is_done(ours):
    interrupts.ignore()
    assert all(map(interrupts.is_ignored, interrupts.SIGNALS))
    signal.raise_signal(signal.SIGTERM)
    assert not ours


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(ours):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.end_at_once()
    assert interrupts.is_ignored(signal.SIGINT)


def test_a_process_of_somebody_else_keeps_its_handlers():
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    interrupts.end_at_once()
    interrupts.ignore()
    assert [signal.getsignal(number) for number in interrupts.SIGNALS] == before
