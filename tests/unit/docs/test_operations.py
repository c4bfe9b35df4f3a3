"""The operations page says what the program does: its tables are written from it, its example runs, its files are there."""

import re
from pathlib import Path

from horolog.base.properties_file import parse
from horolog.broker.config.listeners import advertised_addresses, listen_addresses
from horolog.broker.config.settings import SPECS, load
from horolog.broker.config.topic_settings import ROWS
from tools.operations_tables import filled

PROJECT = Path(__file__).resolve().parents[3]
PAGE = (PROJECT / "docs" / "operations.md").read_text("utf-8")


def blocks():
    """The indented examples."""
    return [
        re.sub("^    ", "", one, flags=re.MULTILINE)
        for one in re.findall(r"(?:^(?:    .*)?\n)+", PAGE, flags=re.MULTILINE)
        if one.strip()
    ]


def test_the_tables_are_those_of_the_program():
    assert filled(PAGE) == PAGE, "python -m tools.operations_tables docs/operations.md writes them anew"


def test_the_example_of_listeners_is_read():
    (source,) = [one for one in blocks() if one.lstrip().startswith("listeners=")]
    settings, warnings = load(None, {}, parse(source.strip().encode()))
    assert not warnings
    assert [one.port for one in listen_addresses(settings)] == [19092, 9092]
    assert advertised_addresses(settings, "machine")["INSIDE"].host == "horolog"


def test_files_and_settings_that_it_names_exist():
    named = re.findall(r"`((?:config|docs)/[\w./-]+|docker-compose\.yml)`", PAGE)
    assert named
    assert all((PROJECT / one).exists() for one in named)
    keys = set(re.findall(r"`(horolog\.[a-z.]+?)(?:=[^`]*)?`", PAGE)) - {"horolog."}
    assert keys
    assert keys <= SPECS.keys() | ROWS.keys()
