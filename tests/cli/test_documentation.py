"""What docs/cli.md says is so: every command, exit code and item has its place there, and the output shown is what comes out."""

import re
import shlex

import pytest

from client.cli.commands import COMMANDS
from client.cli.common.exit_codes import ExitCode
from client.cli.completion import all_specs
from tests.support import golden
from tests.support.style import PROJECT

PAGE = (PROJECT / "docs" / "cli.md").read_text()
ELSEWHERE = {"serve", "version", "completion"}
"""Commands whose help says it all."""
EXAMPLE = re.compile(r"^    \$ horolog (?P<words>.*)\n(?P<output>(?:(?:    .*)?\n)+)", re.MULTILINE)


def section(command):
    found = re.search(rf"^### {command}\b.*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


OURS = [one.name for one in COMMANDS if one.module.startswith("client.cli.") and one.name not in ELSEWHERE]


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

    from client.times import parse_time

    table = PAGE.partition("### Times")[2].partition("## ")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row.split("|")[1]) if text not in {"us", "ns"}]
    assert len(texts) > 20
    for text in texts:
        assert parse_time(text, now_ms=1_700_000_000_000, zone=UTC, ends=True).understood


@pytest.fixture
def example_folder(golden_root, tmp_path, monkeypatch):
    """The folder of the page's examples: a Kafka's, with a flipped bit and a torn tail if the example shows damage."""
    folder = golden.Case("v2-multiseg", golden_root).copy("clean", tmp_path / "data", "orders")
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def damage(folder):
    first, last = folder / f"{0:020}.log", folder / f"{52:020}.log"
    data = bytearray(first.read_bytes())
    data[400] ^= 1
    first.write_bytes(data)
    last.write_bytes(last.read_bytes()[:-5])


@pytest.mark.parametrize("command", ["dump", "doctor", "timeline"])
def test_examples_show_what_comes_out(command, example_folder, horolog):
    examples = list(EXAMPLE.finditer(section(command)))
    assert examples
    for example in examples:
        if "damage" in example["output"]:
            damage(example_folder)
        shown = [line.removeprefix("    ").rstrip() for line in example["output"].rstrip().splitlines()]
        written = [line.rstrip() for line in horolog(*shlex.split(example["words"])).out.splitlines()]
        position = 0
        for line in shown:
            if line != "...":
                assert line in written[position:], line
                position = written.index(line, position) + 1
