"""The expressions of docs/cli.md can be read."""

import re
from datetime import UTC

from horolog.client.decoding.where import compile_where
from tests.support.style import PROJECT


def test_the_expressions_of_the_page():
    text = (PROJECT / "docs/cli.md").read_text("utf-8")
    section = text.partition("### Conditions")[2].partition("| part |")[0]
    lines = re.findall(r"^    (.+)$", section, re.MULTILINE)
    assert len(lines) == 3
    assert all(compile_where(line, 1_700_000_000_000, UTC).needs_decoding for line in lines)
