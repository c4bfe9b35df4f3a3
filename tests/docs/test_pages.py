"""Every block of the README and of the pages in docs is run, in order, on one fresh broker per page, and prints what the page shows.

Blocks that are not run stand in `NOT_RUN` with its reason, by page and first line (`...`: however it goes on): a block that is neither run nor named there is a
failure, and so is a name that no block has. The broker looks for expired records every second: an example whose records are gone
before its reader looks for them fails here as well, by what the broker says of it.
"""

import ast
import json
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support import golden
from tests.support.page_session import MARK
from tests.support.pages import PAGES, RUN, Block, Reader, blocks_in, blocks_of, prints, steps
from tests.support.style import PROJECT

MAKES = "makes an environment and runs for good: .ci/run does it"
DOCKER = "needs a container engine: tests/container"
INSTALLS = "installs packages: tests/cli/test_wheel.py"
ELSEWHERE = "names machines of the reader: tests/pipeline/jobs"
ON_A_CLUSTER = "needs a cluster: tests/pipeline/test_cluster.py"
IN_AN_IMAGE = "the folders of an image and a cluster of the reader: tests/pipeline/test_cluster.py"
BY_A_SCHEDULER = "a line of another program: tests/pipeline/jobs/test_archive.py"
LONG = "takes minutes, and prints what it measured here"
OF_A_KAFKA = "needs the folder of a Kafka, and its tools: tests/interop/test_adopted.py, tests/unit/broker/adoption"
SHAPE = "no program: a shape, a layout or a picture"
RUNS_ON = "runs until it is stopped: tests/cli/test_up.py"
EXPRESSIONS = "no program: read by tests/unit/docs/test_conditions.py"
PICTURES = frozenset({"mermaid"})
READ_AS_SETTINGS = "settings, read by tests/unit/docs/test_operations.py"
MADE_OF_PROFILES = "profiles, read by tests/unit/docs/test_security.py"
GUARDED = "needs a broker with an authorizer: tests/unit/client/cli/test_acls.py"
MADE_OF_SETTINGS = "settings, read by tests/unit/docs/test_security.py"
OVER_A_STORE = "needs a store that serves three brokers: tests/stores/test_serve_over_store.py"
BACKED_UP = "needs a bucket: tests/unit/client/cli/backing_up runs these commands over a folder"
BETWEEN_BROKERS = "settings of three brokers over a store: tests/unit/broker/server/test_secured_peers.py"
ON_KUBERNETES = "needs a cluster of Kubernetes; tests/container/test_cluster_files.py reads the files"
KAFKAS_TOOL = "needs a tool of Kafka's: tests/interop/test_kafka_tools.py"

NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "pip install '.[console]'"): INSTALLS,
    ("CONTRIBUTING.md", "make run       # a broker on 127.0.0.1:9092, data in ./data"): MAKES,
    ("docs/cli.md", "horolog COMMAND [ACTION] [OPTIONS]"): SHAPE,
    ("docs/cli.md", "$ horolog up --demo..."): RUNS_ON,
    ("docs/cli.md", '{"topic": "t", "written": 4, "refused_count": 1,...'): SHAPE,
    ("docs/cli.md", '{"topic": "t", "partition": 0, "offset": 7,...'): SHAPE,
    ("docs/cli.md", '[{"topic": "t", "partition": 0, "asked_ms": 1700000000000,...'): SHAPE,
    ("docs/cli.md", '{"bootstrap": "127.0.0.1:40001",...'): SHAPE,
    ("docs/cli.md", "horolog adopt ..."): OF_A_KAFKA,
    ("docs/cli.md", "[profiles.production]"): MADE_OF_PROFILES,
    ("docs/cli.md", "[profiles.shop]"): MADE_OF_PROFILES,
    ("docs/cli.md", "value.customer.id = 7 and headers.trace ~ '^7f'..."): EXPRESSIONS,
    ("docs/backup.md", "horolog.backup.store=s3://bucket/backup"): BACKED_UP,
    ("docs/backup.md", "horolog backup run ..."): BACKED_UP,
    ("docs/backup.md", "horolog backup verify ..."): BACKED_UP,
    ("docs/backup.md", "horolog restore ..."): BACKED_UP,
    ("docs/cluster.md", "docker compose -f docker-compose.cluster.yml up --build -d"): DOCKER,
    ("docs/cluster.md", "pip install 'horolog[store]'..."): INSTALLS,
    ("docs/cluster.md", "horolog serve --set node.id=1 ..."): OVER_A_STORE,
    ("docs/cluster.md", "horolog topics create orders ..."): OVER_A_STORE,
    ("docs/cluster.md", "while sleep ..."): OVER_A_STORE,
    ("docs/cluster.md", "clients are refused: ..."): SHAPE,
    ("docs/cluster.md", "horolog serve --set node.id=10 ..."): OVER_A_STORE,
    ("docs/cluster.md", "horolog store import ..."): OVER_A_STORE,
    ("docs/cluster.md", "horolog store restore ..."): OVER_A_STORE,
    ("docs/cluster.md", "broker 2 is suspected to have failed"): SHAPE,
    ("docs/cluster.md", "kubectl apply -f config/kubernetes/cluster.yml"): ON_KUBERNETES,
    ("docs/deployment.md", "docker compose up --build -d"): DOCKER,
    ("docs/deployment.md", "kubectl apply ..."): ON_KUBERNETES,
    ("docs/design.md", "record -> Decoder.decode..."): SHAPE,
    ("docs/design.md", "broker -> BrokerSource..."): SHAPE,
    ("docs/design.md", "EventSource --> stream --+"): SHAPE,
    ("docs/migration.md", "horolog adopt ..."): OF_A_KAFKA,
    ("docs/migration.md", "horolog serve --config server.properties --data /var/lib/kafka/data"): OF_A_KAFKA,
    ("docs/migration.md", "kafka-configs.sh ..."): OF_A_KAFKA,
    ("docs/migration.md", "horolog pipeline mirror ..."): ELSEWHERE,
    ("docs/design.md", "socket -> transport..."): SHAPE,
    ("docs/design.md", "frame > 16 KiB -> decode in steps..."): SHAPE,
    ("docs/recipes.md", "horolog dump --deep /var/lib/horolog/sales-2/00000000000000000000.log"): ELSEWHERE,
    ("docs/security.md", "password.encoder.secret=..."): ELSEWHERE,
    ("docs/security.md", "horolog console -b broker:9092 --listen 0.0.0.0:8443 --host console.example..."): ELSEWHERE,
    ("docs/security.md", "delegation.token.secret.key=..."): ELSEWHERE,
    ("docs/security.md", "kafka-delegation-tokens.sh ..."): KAFKAS_TOOL,
    ("docs/security.md", "sasl.mechanism=SCRAM-SHA-256..."): ELSEWHERE,
    ("docs/security.md", "LoadCredentialEncrypted=..."): ELSEWHERE,
    ("docs/design.md", "options -> preparing..."): SHAPE,
    ("docs/design.md", "plan (no lock) -> enough?..."): SHAPE,
    ("docs/design.md", "bytes -> TLS (transport)..."): SHAPE,
    ("docs/design.md", "login, tls_wire (a peer's handshake)..."): SHAPE,
    ("docs/design.md", "<data folder>/"): SHAPE,
    ("docs/design.md", "python -m tests.simulation --seeds 400 --jobs 2..."): LONG,
    ("docs/design.md", "python -m tests.simulation --workers 3..."): LONG,
    ("docs/design.md", "clock.advance -> Broker.time_has_moved..."): SHAPE,
    ("docs/design.md", "supervisor  (no log, no handlers)..."): SHAPE,
    ("docs/design.md", "pyspark_horolog  ->  source..."): SHAPE,
    ("docs/durability.md", "<segment>.log.<position>.<first offset>-<last offset>.<crc32c>.damaged"): SHAPE,
    ("docs/operations.md", "listeners=INSIDE://0.0.0.0:19092,OUTSIDE://0.0.0.0:9092"): READ_AS_SETTINGS,
    ("docs/operations.md", "docker compose up --build -d"): DOCKER,
    ("docs/operations.md", "ports:"): DOCKER,
    ("docs/security.md", "listeners=LOCAL://127.0.0.1:9092,CLIENTS://0.0.0.0:9094"): MADE_OF_SETTINGS,
    ("docs/security.md", "listeners=OUTSIDE://0.0.0.0:9092,INSIDE://0.0.0.0:9093"): BETWEEN_BROKERS,
    ("docs/security.md", "listeners=LOCAL://127.0.0.1:9092,CERTIFIED://0.0.0.0:9093"): MADE_OF_SETTINGS,
    ("docs/security.md", "security.protocol=SSL"): MADE_OF_SETTINGS,
    ("docs/security.md", "horolog users add alice --data /var/lib/horolog..."): ELSEWHERE,
    ("docs/security.md", "listener.name.clients.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER"): MADE_OF_SETTINGS,
    (
        "docs/security.md",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ): MADE_OF_SETTINGS,
    ("docs/security.md", "horolog acls ..."): GUARDED,
    ("docs/security.md", "horolog.audit.file=/var/log/horolog/audit.jsonl"): MADE_OF_SETTINGS,
    ("docs/security.md", '{"time": "2026-11-23T09:30:00.117Z", "event": "login"...'): SHAPE,
    ("docs/security.md", "kafka-configs.sh --bootstrap-server broker:9092 --alter..."): KAFKAS_TOOL,
    ("docs/pipeline.md", "pip install ..."): INSTALLS,
    ("docs/pipeline.md", "pip wheel ..."): INSTALLS,
    ("docs/pipeline.md", "echo ..."): ON_A_CLUSTER,
    ("docs/pipeline.md", "FROM spark-python3..."): IN_AN_IMAGE,
    ("docs/pipeline.md", "*/10 * * * * ..."): BY_A_SCHEDULER,
    ("docs/pipeline.md", "BashOperator(..."): BY_A_SCHEDULER,
    ("docs/pipeline.md", "horolog pipeline ..."): ELSEWHERE,
    ("docs/pipeline.md", 'pipeline.table(spark, "/data/orders", ...'): ELSEWHERE,
    ("docs/pipeline.md", "$ horolog pipeline ..."): ELSEWHERE,
    ("docs/pipeline.md", "mirror: ..."): ELSEWHERE,
    ("docs/pipeline.md", "archive = spark.read..."): OVER_A_STORE,
    ("docs/measurements.md", "python -m benchmarks.kafka fetch 4.3.1 3.9.2 0.10.2.2..."): LONG,
}

PIPELINE = PROJECT / "docs" / "pipeline.md"
"""Its programs need Spark, share one session and are indented: what Python reads as a program is one, what follows is what it prints."""
DEFAULTS = {"log.retention.check.interval.ms": "1000", "group.initial.rebalance.delay.ms": "0"}


def names(path):
    return path.name


def reason(block: Block) -> tuple[str, str] | None:
    """The line of the table that is about a block."""
    for page, first in NOT_RUN:
        begins, more, _ = first.partition("...")
        if page == block.page and (block.first.startswith(begins) if more else block.first == first):
            return page, first
    return None


def is_run(block: Block) -> bool:
    return block.language in RUN and reason(block) is None


def test_a_page_is_read_as_its_writer_means_it():
    text = (
        "words\n## below a heading\n    $ one\n    x ... y\n\n- a list\n    that goes on\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
        "\n    a shape\n\n    of two parts\n\n```sh\ntrue\n```\n"
    )
    assert [(one.language, one.text, one.prints, one.line) for one in blocks_in(text, "p")] == [
        ("console", "$ one\nx ... y\n", None, 3),
        ("python", "print(1)\n", "1\n", 9),
        ("", "a shape\n\nof two parts\n", None, 17),
        ("sh", "true\n", None, 21),
    ]
    assert [(one.command, one.expected) for one in steps("$ one\nx  \n$ cat <<'END'\n$ no\nEND\n$ two\n")] == [
        ("one", ["x"]),
        ("cat <<'END'\n$ no\nEND", []),
        ("two", []),
    ]
    assert prints(["x ... y"], "x    17   y\n")
    assert not prints(["x ... y"], "x 17 z\n")
    assert not prints(["x ... y"], "x  y\n")
    assert prints(["a", "...", "b"], "a\n1\n2\nb\n")
    assert prints(["a", "..."], "a\n")
    assert not prints(["a", "...", "b"], "a\n1\n")
    assert not prints([], "something\n")


class Walk(NamedTuple):
    """A program of the pipeline's page, or the broker that it starts, with the output shown behind it."""

    text: str
    shown: list[str]
    lines: list[int]
    """Where its blocks begin."""

    @property
    def serves(self) -> bool:
        return self.text.startswith("horolog serve")


def is_program(text: str) -> bool:
    try:
        parsed = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Import | ast.ImportFrom) for node in ast.walk(parsed))


def walk(blocks: list[Block]) -> list[Walk]:
    found: list[Walk] = []
    for block in blocks:
        if reason(block) is not None:
            continue
        program, shown = parts_of(block)
        if program:
            found.append(Walk(program, shown, [block.line]))
        elif found and not found[-1].shown and not found[-1].serves:
            found[-1].shown.extend(shown)
            found[-1].lines.append(block.line)
    return found


def parts_of(block: Block) -> tuple[str, list[str]]:
    """A program, and what stands behind it: parts of one indented block have nothing but an empty line between them."""
    if block.text.startswith("horolog serve"):
        return block.text, []
    parts = block.text.split("\n\n")
    for count in range(len(parts), 0, -1):
        if is_program("\n\n".join(parts[:count])):
            shown = "\n".join([*parts[count:], block.prints or ""])
            return "\n\n".join(parts[:count]), [line for line in shown.splitlines() if line.strip()]
    return "", block.text.splitlines()


def shown_as(line: str) -> str:
    """Rows of tables as they are, but for their widths; in other lines figures may differ: they are sizes and times of a machine."""
    line = re.sub(r"-{2,}", "--", re.sub(r"\s+", " ", line.strip()))
    return line if line[:1] in {"|", "+"} else re.sub(r"[0-9][0-9.,]*", "#", line)


def is_shown(line: str, printed: Iterator[str]) -> bool:
    """Whether it comes among the lines printed from here on; `...` is anything."""
    pattern = re.compile(r".+".join(map(re.escape, shown_as(line).split("..."))))
    return any(pattern.fullmatch(shown_as(each)) for each in printed)


def test_every_block_is_run_or_named_with_the_reason_why_not():
    blocks = [block for path in PAGES for block in blocks_of(path)]
    walked = {line for step in walk(blocks_of(PIPELINE)) for line in step.lines}
    neither = [
        one
        for one in blocks
        if one.language not in RUN | PICTURES
        and reason(one) is None
        and (one.page != "docs/pipeline.md" or one.line not in walked)
    ]
    assert [f"{one.page}, line {one.line}: {one.first}" for one in neither] == []
    assert NOT_RUN.keys() - {reason(one) for one in blocks} == set(), "no block begins so any more"
    assert sum(is_run(block) for block in blocks) >= 30


def prepare(page, reader, golden_root):
    """What a page expects of the folder that its reader is in."""
    (reader.folder / "config").mkdir()
    for place in ("config/server.properties", "server.properties"):
        (reader.folder / place).write_bytes((PROJECT / "config" / "server.properties").read_bytes())
    if page != "docs/cli.md":
        return
    folder = golden.Case("v2-multiseg", golden_root).copy("clean", reader.folder / "data", "orders")
    (reader.folder / "data" / ".kafka_cleanshutdown").unlink()
    first, last = folder / f"{0:020}.log", folder / f"{52:020}.log"
    data = bytearray(first.read_bytes())
    data[400] ^= 1
    first.write_bytes(data)
    last.write_bytes(last.read_bytes()[:-5])
    for place in (".zfunc", ".config/fish/completions"):
        (reader.folder / place).mkdir(parents=True)
    reader.environ["COLUMNS"] = "80"


@pytest.fixture(scope="module")
def golden_root(tmp_path_factory):
    return golden.unpacked(tmp_path_factory)


@pytest.mark.parametrize(
    "path",
    [each for each in PAGES if each != PIPELINE and any(map(is_run, blocks_of(each)))],
    ids=names,
)
def test_a_page_is_true(path, start_broker, tmp_path, golden_root):
    broker = start_broker(**{key.replace(".", "__"): value for key, value in DEFAULTS.items()})
    home = tmp_path / "home"
    home.mkdir()
    reader = Reader(home, broker.address)
    blocks = [block for block in blocks_of(path) if is_run(block)]
    prepare(blocks[0].page, reader, golden_root)
    for block in blocks:
        reader.follow(block)
    reader.run_tests()
    told = [line for line in broker.log().splitlines() if "time_watch" in line or " expired (" in line]
    assert told == [], "records of the examples do not stay"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_page_of_the_pipeline(tmp_path):
    for name in ("pyspark", "pandas", "pyarrow"):
        pytest.importorskip(name, reason="the extra `pipeline` is not installed")
    steps_of_page = walk(blocks_of(PIPELINE))
    programs = [step for step in steps_of_page if not step.serves]
    (server,) = [step for step in steps_of_page if step.serves]
    reader = Reader(tmp_path, "127.0.0.1:9092")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = shlex.split(server.text.replace("\\\n", " ").replace("19092", port))
    with subprocess.Popen(words, cwd=tmp_path, env=reader.environ, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert " ready on " in broker.stdout.readline()
            ended = subprocess.run(
                [sys.executable, "-m", "tests.support.page_session"],
                input=json.dumps([step.text.replace("19092", port) for step in programs]),
                cwd=tmp_path,
                env=reader.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=500,
                check=False,
            )
        finally:
            broker.terminate()
    assert ended.returncode == 0, ended.stdout[-5000:]
    printed = re.split(f"{re.escape(MARK)}[0-9]+\n", ended.stdout)[1:]
    for step, said in zip(programs, printed, strict=True):
        lines = iter(said.splitlines())
        missing = [line for line in step.shown if not is_shown(line, lines)]  # in this order
        assert missing == [], f"docs/pipeline.md, line {step.lines[0]}\n{said[-5000:]}"
