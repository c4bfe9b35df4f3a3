"""What a word was probably meant to be: a name, one of other tools, or one spelled nearly so."""

import pytest

from horolog.client.cli.commands import BY_NAME
from horolog.commands import suggestions

ACTIONS = ("list", "create", "describe", "alter", "delete", "trim")


@pytest.mark.parametrize(
    ("word", "action"),
    [("ls", "list"), ("RM", "delete"), ("desc", "describe"), ("creat", "create"), ("seek", None), ("xyzzy", None)],
)
def test_an_action_is_found_by_its_names_elsewhere_and_by_its_letters(word, action):
    assert suggestions.action_like(word, ACTIONS) == action


def test_every_name_elsewhere_leads_to_a_command_that_there_is():
    for word in ("start", "tail", "pub", "ui", "fsck", "ping", "lookup", "config", "acl", "scram", "profile"):
        assert suggestions.command_elsewhere(word, BY_NAME) in BY_NAME
    assert suggestions.command_elsewhere("list", BY_NAME) is None
