"""Results of real clients become the tables of docs/clients.md, and the text around them stays."""

import xml.etree.ElementTree as ET

import pytest

from tests.interop import table
from tests.interop.table import CLIENTS, READERS, TOOLS, filled, outcomes
from tests.support.style import PROJECT
from tools.pages import END, with_part

PAGE = (PROJECT / "docs" / "clients.md").read_text("utf-8")
HAND = "# Tested clients\n\n{}\nold\n{}\n\n## By hand\n\n{}\nold\n{}\n\nMore.\n\n{}\nold\n{}\n"
REPORT = """<testsuite>
<testcase classname="tests.interop.test_go_clients" name="test_a_client_passes_a_check[go-franz-1-codec_zstd]"/>
<testcase classname="tests.interop.test_go_clients" name="test_a_client_passes_a_check[go-franz-1-offsets_by_time]"/>
<testcase classname="tests.interop.test_go_clients" name="test_a_client_passes_a_check[go-franz-1-log_append_time]">
<failure/></testcase>
<testcase classname="tests.interop.test_go_clients" name="test_a_client_passes_a_check[go-franz-1-idempotent]">
<skipped type="pytest.skip"/></testcase>
<testcase classname="tests.interop.test_kafka_tools" name="test_configurations"/>
<testcase classname="tests.interop.test_old_formats" name="test_what_was_written_is_read[kafkajs 2-v0-gzip]"/>
<testcase classname="tests.interop.test_old_formats" name="test_what_was_written_is_read[kafkajs 2-v1-gzip]">
<skipped type="pytest.xfail"/></testcase>
</testsuite>"""


def rows(page, mark):
    return page.partition(mark)[2].partition(END)[0].splitlines()[3:]


def test_tables_are_replaced_and_the_text_around_them_stays():
    page = HAND.format(CLIENTS, END, TOOLS, END, READERS, END)
    made = filled(page, outcomes(ET.fromstring(REPORT).iter("testcase")))
    assert "old\n" not in made
    assert "\n## By hand\n" in made
    assert made.endswith(f"{END}\n")
    (client,) = rows(made, CLIENTS)
    assert client.startswith("| go-franz-1 | 1 | yes | - | no | - |")
    assert "| not run |" in client
    assert rows(made, TOOLS) == ["| settings | yes |"]
    assert rows(made, READERS) == ["| kafkajs 2 | yes | no (0 of 1) | - | - | - |"]


def test_a_table_without_results_stays_as_it_is():
    assert filled(PAGE, []) == PAGE
    assert [PAGE.count(mark) for mark in (CLIENTS, TOOLS, READERS)] == [1, 1, 1]
    assert rows(PAGE, TOOLS)[0] == "| brokers and log folders | yes |"


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="has no part from <!-- clients -->"):
        with_part("# Tested clients\n", CLIENTS, "| |\n")
    assert table.PAGE == PROJECT / "docs" / "clients.md"
