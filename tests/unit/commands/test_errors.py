"""An error is one sentence for people, and an exit code for scripts."""

import pytest

from horolog.commands.errors import BusyError, CommandError, NotFoundError, UnreachableError, UsageError


def test_the_advice_belongs_to_the_sentence():
    assert str(CommandError("there is no topic 'x'", "do you mean 'y'?")) == "there is no topic 'x'; do you mean 'y'?"
    assert str(CommandError("it failed")) == "it failed"


@pytest.mark.parametrize(
    ("kind", "code"), [(CommandError, 1), (UsageError, 2), (NotFoundError, 4), (UnreachableError, 5), (BusyError, 6)]
)
def test_scripts_tell_errors_by_their_exit_codes(kind, code):
    error = kind("message", "advice")
    assert (int(error.code), error.message, error.advice) == (code, "message", "advice")
