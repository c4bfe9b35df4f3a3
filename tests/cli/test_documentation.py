"""What docs/cli.md says is so: every command, exit code and item has its place there; its examples are run by tests/docs."""

import re

import pytest

from horolog.client.cli.commands import COMMANDS
from horolog.client.cli.completion import all_specs
from horolog.commands.exit_codes import ExitCode
from tests.support.style import PROJECT

PAGE = (PROJECT / "docs" / "cli.md").read_text()
ELSEWHERE = {"serve", "version", "completion"}
"""Commands whose help says it all."""


def section(command):
    found = re.search(rf"^### {command}\b.*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


OURS = [one.name for one in COMMANDS if one.module.startswith("horolog.client.cli.") and one.name not in ELSEWHERE]


@pytest.mark.parametrize("command", OURS)
def test_every_command_has_a_section_that_names_its_actions(command):
    text = section(command)
    assert text
    actions = [spec.words[1] for spec in all_specs() if len(spec.words) == 2 and spec.words[0] == command]
    assert all(action in text for action in actions)


def test_exit_codes_are_documented():
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", PAGE, re.MULTILINE)
    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_times_that_are_documented_are_read():
    from datetime import UTC

    from horolog.client.values.times import parse_time

    table = PAGE.partition("### Times")[2].partition("## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row.split("|")[1]) if text not in {"us", "ns"}]
    assert len(texts) > 20
    for text in texts:
        assert parse_time(text, now_ms=1_700_000_000_000, zone=UTC, ends=True).understood
