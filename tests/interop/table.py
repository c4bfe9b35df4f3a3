"""Runs the tests of real clients and writes the results into the tables of `docs/clients.md`: `python -m tests.interop.table`.

The rest of the page is written by hand. `--from FILE` takes the JUnit file of a run that has been made already.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.interop.clients import CHECKS
from tests.interop.test_kafka_streams import VERSION as STREAMS
from tests.support.style import PROJECT
from tools.pages import with_part

PAGE = PROJECT / "docs" / "clients.md"
RUN_TIMEOUT_SECONDS = 3600
FILES = (
    "test_confluent",
    "test_aiokafka",
    "test_kafka_python",
    "test_groups",
    "test_transactions",
    "test_java_clients",
    "test_kafka_streams",
    "test_go_clients",
    "test_node_clients",
    "test_kcat_clients",
    "test_kafka_tools",
    "test_old_formats",
)
COLUMNS: dict[str, list[str]] = {
    "codecs": [check for check in CHECKS if check.startswith("codec_")],
    "lookup by time": ["offsets_by_time"],
    "latest timestamp": ["max_timestamp"],
    "LogAppendTime": ["log_append_time"],
    "error for a refused timestamp": ["too_old_refused"],
    "group: rebalance": ["group_rebalance"],
    "group: resume": ["group_resume"],
    "group: KIP-848": ["group_protocol_consumer", "resume_protocol_consumer"],
    "idempotence": ["idempotent"],
    "transactions": ["transactions"],
    "offsets in transactions": ["transaction_offsets"],
    "admin: topics, settings": ["admin_topics"],
    "admin: groups": ["admin_groups"],
}
OLD_FORMATS = "old formats: "
"""What the name of a reader of old formats begins with, so that it is no row among the clients."""
CHECKS_OF_STREAMS = ("group_resume", "idempotent", "transactions", "transaction_offsets")
"""What exactly-once processing through kills cannot do without."""
PYTHON_CLIENTS = {"confluent": "confluent-kafka", "aiokafka": "aiokafka", "kafka_python": "kafka-python"}
CHECKS_OF_TEST: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"test_(what_is_produced_is_consumed|lines_come_back)", ("codec_{0}",)),
    (r"test_look_ups_by_time", ("offsets_by_time",)),
    (r"test_log_append_time", ("log_append_time",)),
    (r"test_a_time_out_of_bounds", ("too_old_refused",)),
    (r"test_an_idempotent_producer", ("idempotent",)),
    (r"test_(topics|configurations)", ("admin_topics",)),
    (r"test_a_group_shares", ("group_rebalance",)),
    (r"test_a_group_goes_on", ("group_resume",)),
    (r"test_transactions", ("transactions",)),
    (r"test_readers_see_what", ("transactions",)),
    (r"test_confluent_transforms", ("transaction_offsets",)),
    (r"test_\w+_share_leave_and_resume\[consumer", ("group_protocol_consumer",)),
    (r"test_\w+_share_leave_and_resume", ("group_rebalance", "group_resume")),
    (r"test_\w+_(administers|looks_at_resets_and_removes)_groups", ("admin_groups",)),
)
CLIENTS, TOOLS, READERS = "<!-- clients -->", "<!-- tools -->", "<!-- readers of old formats -->"
"""The marks before the tables; each table ends at the next `END` of `tools.pages`."""
AREAS = {
    "configurations": "settings",
    "groups go back in time": "groups: reset by time",
    "offsets by time and deleted records": "deleted records, and offsets by time",
    "what the broker says of itself": "brokers and log folders",
}
"""Names of rows for readers, by the test behind the row; other rows have the name of their test."""
WRITERS = {
    "v0": "v0 (0.8, 0.9)",
    "v1": "v1 (0.10)",
    "appended": "v1, LogAppendTime",
    "v0_as_v1": "v0, kept as v1",
    "mixed": "v0, v1 and v2 in turn",
}


class Outcome(NamedTuple):
    """One test of one client: passed, failed or skipped."""

    client: str
    check: str
    result: str


def result_of(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "failed" if skipped.get("type") == "pytest.xfail" else "skipped"


def outcomes(cases: Iterable[ET.Element]) -> Iterator[Outcome]:
    for case in cases:
        file, name = str(case.get("classname")).rpartition(".")[2], str(case.get("name"))
        result = result_of(case)
        if file == "test_kafka_tools":
            area = name.removeprefix("test_").replace("_", " ")
            yield Outcome("tools", AREAS.get(area, area), result)
        elif file == "test_kafka_streams":
            for check in CHECKS_OF_STREAMS:
                yield Outcome(f"kafka-streams-{STREAMS}", check, result)
        elif found := re.fullmatch(r"test_what_was_written_is_read\[(.*)-(\w+)-(\w+)\]", name):
            yield Outcome(f"{OLD_FORMATS}{found[1]}", f"{found[2]}-{found[3]}", result)
        elif found := re.fullmatch(r"test_a_client_passes_a_check\[(.*)-(\w+)\]", name):
            yield Outcome(found[1], found[2], result)
        elif client := python_client(file, name):
            parameter = re.search(r"\[(.*)\]", name)
            for check in checks_of(name):
                yield Outcome(client, check.format(parameter[1] if parameter else ""), result)


def checks_of(name: str) -> tuple[str, ...]:
    return next((checks for pattern, checks in CHECKS_OF_TEST if re.match(pattern, name)), ())


def python_client(file: str, name: str) -> str | None:
    """Which client a test of the Python clients or kcat is about; its file or its name says it."""
    if file == "test_kcat_clients":
        return "kcat"
    for word, package in PYTHON_CLIENTS.items():
        if word in f"{file} {name.replace('-', '_')}":
            return f"{package} {version(package)}"
    return None


def cell(column: str, results: dict[str, set[str]]) -> str:
    """What a column says from the results of its checks."""
    told = [results[check] for check in COLUMNS[column] if check in results]
    if not told:
        return "-"
    passed = sum(one == {"passed"} for one in told)
    if any("failed" in one for one in told):
        return f"no ({passed} of {len(told)})" if len(told) > 1 else "no"
    if passed < len(told):
        return f"{passed} of {len(told)}, the rest not run" if passed else "not run"
    return str(passed) if column == "codecs" else "yes"


def reader_cell(by_writer: dict[str, str], writer: str) -> str:
    """The sentence about one reader and one writer, all codecs together."""
    results = [result for check, result in by_writer.items() if check.rpartition("-")[0] == writer]
    passed, failed = results.count("passed"), results.count("failed")
    if not results:
        return "-"
    if failed:
        return f"no ({passed} of {len(results)})"
    if passed == len(results):
        return "yes"
    return f"{passed} of {len(results)}, the rest not run" if passed else "not run"


def readers_table(readers: Mapping[str, dict[str, str]]) -> str:
    """Readers by release and writers by format."""
    lines = [f"| reader | {' | '.join(WRITERS.values())} |", "|---" * (len(WRITERS) + 1) + "|"]
    for reader, results in readers.items():
        name = reader if " " in reader else f"{reader} {version(reader)}"
        lines.append(f"| {name} | {' | '.join(reader_cell(results, one) for one in WRITERS)} |")
    return "\n".join(lines) + "\n"


def clients_table(clients: Mapping[str, dict[str, set[str]]]) -> str:
    lines = [f"| client | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [
        f"| {client} | {' | '.join(cell(column, results) for column in COLUMNS)} |"
        for client, results in sorted(clients.items())
    ]
    return "\n".join(lines) + "\n"


def tools_table(tools: Mapping[str, set[str]]) -> str:
    words = {"passed": "yes", "failed": "no", "skipped": "not run"}
    rows = [
        f"| {what} | {', '.join(words[one] for one in sorted(results))} |" for what, results in sorted(tools.items())
    ]
    return "\n".join(["| area | passed |", "|---|---|", *rows]) + "\n"


def filled(page: str, found: Iterable[Outcome]) -> str:
    """The page with the tables of this run. A table that has no results in it stays as it is."""
    clients: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    readers: dict[str, dict[str, str]] = defaultdict(dict)
    for client, check, result in found:
        if client.startswith(OLD_FORMATS):
            readers[client.removeprefix(OLD_FORMATS)][check] = result
        else:
            clients[client][check].add(result)
    tools = clients.pop("tools", {})
    for mark, rows, written in (
        (CLIENTS, clients, clients_table),
        (TOOLS, tools, tools_table),
        (READERS, readers, readers_table),
    ):
        if rows:
            page = with_part(page, mark, written(rows))
    return page


def run(report: Path) -> None:
    tests = [str(PROJECT / "tests" / "interop" / f"{name}.py") for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *tests]
    subprocess.run(command, cwd=PROJECT, timeout=RUN_TIMEOUT_SECONDS, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--from", dest="report", type=Path, help="the JUnit file of a run that was made already")
    chosen: Path | None = parser.parse_args().report
    with tempfile.TemporaryDirectory() as scratch:
        report = chosen or Path(scratch) / "report.xml"
        if chosen is None:
            run(report)
        found = outcomes(ET.parse(report).iter("testcase"))
        PAGE.write_text(filled(PAGE.read_text("utf-8"), found), "utf-8")
    print(f"wrote {PAGE.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
