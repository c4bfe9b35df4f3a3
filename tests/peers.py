"""Runs the test suites of other projects, unmodified, against a fresh broker each: `python -m tests.peers SUITE`, or `make peers`.

    clients       the integration tests of Kafka's own clients, by Maven: each starts a broker of its own, with as many workers as it wants
                  brokers; those that need a login, an older feature level, or the inside of a broker are skipped
    franz-go      the tests of its client, by Go's module proxy; those that need no broker run too
    kafka-go      the same; its tests name a fixed address, which is replaced
    kafka-python  the integration tests in its source archive, without those of TLS, which start Kafka themselves; two modules that the
                  archive leaves out are put there
    librdkafka    the tests of its share consumer, in C, with libzstd: cloned from GitHub, or copied from the folder that LIBRDKAFKA_SOURCE
                  names

`--kafka` runs them against Kafka instead, as a baseline, and `--workers N` against horolog with several workers. Prints a table, and the
tests that failed; ends with 1 if there are any. Neither applies to `clients`, whose tests start horolog. The tests of `clients`
and of librdkafka need half an hour and more; librdkafka's outcomes are printed as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from benchmarks import kafka
from tests.interop.toolchains import HERE, cache_dir, whole_folder
from tests.support.broker_process import PROJECT, BrokerProcess

KAFKA = "4.3.1"
FRANZ_GO = "1.22.3"
KAFKA_GO = "0.4.51"
KAFKA_PYTHON = "3.0.12"
LIBRDKAFKA = "2.15.0"
LIBRDKAFKA_URL = "https://github.com/confluentinc/librdkafka"
LIBRDKAFKA_SOURCE = "LIBRDKAFKA_SOURCE"
SHARE_TESTS = [f"{number:04}" for number in (*range(170, 182), 184, 185)]
"""Those of librdkafka's tests of share consumers that need a broker."""
PATIENCE = 5
"""By how much the limits of librdkafka's tests are multiplied, for slow machines."""
STARTS_BROKERS = "RaftClusterInvocationContext"
CLIENT_TESTS = (
    f"org.apache.kafka:kafka-clients-integration-tests:{KAFKA}:test",
    f"org.apache.kafka:kafka-test-common-runtime:{KAFKA}",
    f"org.apache.kafka:kafka-test-common-internal-api:{KAFKA}",
    f"org.apache.kafka:kafka-clients:{KAFKA}:test",
    f"org.apache.kafka:kafka-server-common:{KAFKA}:test",
    f"org.apache.kafka:kafka_2.13:{KAFKA}:test",
    "org.junit.platform:junit-platform-console-standalone:1.13.4",
)
KAFKA_GO_ADDRESS = "localhost:9092"
EXTERNAL_BROKER = """
class SpawnedService:
    pass


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = open
"""
"""What kafka-python's tests import, and its archive leaves out: a broker that runs already."""
TEST_TIMEOUT_S = 120
SUITE_TIMEOUT_S = 7200
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
}
"""Members hear of their partitions soon, and suites may choose short locks."""
ACCESS_LISTS = {
    "allow.everyone.if.no.acl.found": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}

Outcomes = Mapping[str, str]
"""By the name of a test: passed, failed or skipped."""


class Suite(NamedTuple):
    """A project's tests; `run` gets the address of a broker with those settings, and an empty folder."""

    version: str
    run: Callable[[str, Path], Outcomes]
    settings: Mapping[str, str] = {}


def command(words: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """Run a command, which may fail; what it prints."""
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SUITE_TIMEOUT_S,
        check=False,
    )
    return done.stdout


# -- in Go


def franz_go(address: str, scratch: Path) -> Outcomes:
    source = go_source(f"github.com/twmb/franz-go@v{FRANZ_GO}", scratch)
    return go_test(source, "./pkg/kgo", KGO_SEEDS=address, KGO_TEST_RF="1", KGO_TEST_RECORDS="20000")


def kafka_go(address: str, scratch: Path) -> Outcomes:
    source = go_source(f"github.com/segmentio/kafka-go@v{KAFKA_GO}", scratch)
    for path in {*source.glob("*_test.go")} - {source / "address_test.go"}:
        text = path.read_text().replace(KAFKA_GO_ADDRESS, address)
        path.write_text(text.replace('TCP("localhost")', f'TCP("{address}")'))
    return go_test(source, ".", KAFKA_VERSION=KAFKA)


def go_source(module: str, scratch: Path) -> Path:
    """A copy of a module's source; as the cache of modules has it, not even Go may write there."""
    found = json.loads(command(["go", "mod", "download", "-json", module], scratch))
    source = scratch / "source"
    shutil.copytree(found["Dir"], source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return source


def go_test(source: Path, package: str, **environment: str) -> Outcomes:
    words = ["go", "test", "-mod=mod", "-json", "-count=1", f"-timeout={SUITE_TIMEOUT_S - 60}s", package]
    return of_go(command(words, source, **environment).splitlines())


def of_go(lines: Iterable[str]) -> Outcomes:
    """The outcomes of whole tests in what `go test -json` prints; one that did not end has failed."""
    found: dict[str, str] = {}
    words = {"run": FAILED, "pass": PASSED, "fail": FAILED, "skip": SKIPPED}
    for line in lines:
        event = json.loads(line) if line.startswith("{") else {}
        name, action = event.get("Test", ""), event.get("Action", "")
        if name and "/" not in name and action in words:
            found[name] = words[action]
    return found


# -- in Python


def kafka_python(address: str, scratch: Path) -> Outcomes:
    words = [f"--dest={scratch}", f"kafka-python=={KAFKA_PYTHON}"]
    built([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:", *words], scratch)
    source, report = scratch / f"kafka_python-{KAFKA_PYTHON}", scratch / "report.xml"
    shutil.unpack_archive(f"{source}.tar.gz", scratch)
    (source / "test" / "__init__.py").touch()
    (source / "test" / "service.py").write_text(EXTERNAL_BROKER)
    command(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"),
            *("-o", f"timeout={TEST_TIMEOUT_S}", "-o", "timeout_method=signal", f"--junitxml={report}"),
            *("--ignore=test/integration/test_ssl_integration.py", "test/integration"),
        ],
        source,
        KAFKA_URI=f"kafka://{address}",
        KAFKA_VERSION=KAFKA.rpartition(".")[0],
        KAFKA_ROOT=str(scratch),
    )
    return of_junit(report.read_text())


# -- Kafka's own clients


def clients(_address: str, scratch: Path) -> Outcomes:
    """The class that starts brokers is replaced by our own of the same name, which stands first on the class path."""
    jars = f"{client_tests()}/*:{kafka.libs(KAFKA)}/*"
    classes = scratch / "classes"
    built(["javac", "-nowarn", "-d", str(classes), "-cp", jars, str(HERE / "java" / f"{STARTS_BROKERS}.java")], scratch)
    command(
        [
            *("java", "-Xmx512m", f"-Dbroker.command={sys.executable} -m horolog.client.cli.main serve"),
            *("-cp", f"{classes}:{jars}", "org.junit.platform.console.ConsoleLauncher", "execute"),
            *("--config", "junit.jupiter.extensions.autodetection.enabled=true", f"--reports-dir={scratch}"),
            *("--details=none", "--select-package=org.apache.kafka.clients"),
        ],
        PROJECT,
    )
    return of_junit((scratch / "TEST-junit-jupiter.xml").read_text())


def of_junit(report: str) -> Outcomes:
    """The outcomes in a report in the form of JUnit."""
    words = {"failure": FAILED, "error": FAILED, "skipped": SKIPPED}
    found: dict[str, str] = {}
    for case in ET.fromstring(report).iter("testcase"):
        outcome = next((words[one.tag] for one in case if one.tag in words), PASSED)
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = FAILED if FAILED in {outcome, found.get(name)} else outcome
    return found


def client_tests() -> Path:
    """The archives of the tests with what they need beside the broker's."""

    def fill(folder: Path) -> None:
        wanted = "".join(map(dependency, CLIENT_TESTS))
        (folder / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>tests</artifactId>"
            f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
        )
        built(
            [
                "mvn",
                "-q",
                "-B",
                "dependency:copy-dependencies",
                f"-DoutputDirectory={folder}",
                "-DexcludeTransitive=true",
            ],
            folder,
        )

    return whole_folder(cache_dir() / "java" / f"client-tests-{KAFKA}", fill)


def dependency(coordinates: str) -> str:
    """GROUP:ARTIFACT:VERSION, and a classifier if there is one, as Maven's XML."""
    names = ("groupId", "artifactId", "version", "classifier")
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, coordinates.split(":"), strict=False))
    return f"<dependency>{fields}</dependency>"


# -- librdkafka


def librdkafka(address: str, scratch: Path) -> Outcomes:
    """Its tests of share consumers, each in a process of its own: one that takes too long ends its process."""
    tests = librdkafka_tests()
    config, report = scratch / "test.conf", scratch / "report.json"
    config.write_text(f"bootstrap.servers={address}\ntest.timeout.multiplier={PATIENCE}\n")
    environment = {
        "RDKAFKA_TEST_CONF": str(config),
        "TEST_REPORT": str(report),
        "TEST_KAFKA_VERSION": KAFKA,
        "LD_LIBRARY_PATH": f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}",
    }
    found: dict[str, str] = {}
    for number in SHARE_TESTS:
        report.unlink(missing_ok=True)
        said = command([tests / "test-runner", "-p1", "-E", "-L"], tests, TESTS=number, **environment)
        if not report.exists():
            raise SystemExit(f"librdkafka's test {number} did not run:\n{said[-2000:]}")
        outcomes = of_librdkafka(report.read_text(errors="replace"))
        print(*(f"{name}: {outcome}" for name, outcome in outcomes.items()), sep="\n", flush=True)
        found |= outcomes
    return found


def of_librdkafka(report: str) -> Outcomes:
    """The outcomes in a report of its tests; those that were not chosen are left out."""
    words = {"PASSED": PASSED, "FAILED": FAILED, "RUNNING": FAILED}
    tests = json.loads(report)["tests"]
    return {name: words[one["state"]] for name, one in tests.items() if one["state"] in words and name != "<MAIN>"}


def librdkafka_tests() -> Path:
    """The folder of its tests, built once."""
    given = os.environ.get(LIBRDKAFKA_SOURCE)

    def fill(folder: Path) -> None:
        if given:
            shutil.copytree(given, folder, dirs_exist_ok=True)
        else:
            built(["git", "clone", "-q", "--depth=1", f"--branch=v{LIBRDKAFKA}", LIBRDKAFKA_URL, "."], folder)
        left_out = [f"--disable-{one}" for one in ("ssl", "sasl", "gssapi", "curl")]
        built(["./configure", *left_out], folder)
        built(["make", "-j2", "-C", "src"], folder)
        built(["make", "-j2", "-C", "src-cpp"], folder)
        built(["make", "-j2", "-C", "tests", "test-runner"], folder)

    return whole_folder(cache_dir() / "librdkafka" / LIBRDKAFKA, fill) / "tests"


def built(words: Sequence[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=SUITE_TIMEOUT_S, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{(done.stdout + done.stderr)[-2000:]}")


# -- all of them

SUITES = {
    "clients": Suite(KAFKA, clients),
    "franz-go": Suite(FRANZ_GO, franz_go),
    "kafka-go": Suite(KAFKA_GO, kafka_go),
    "kafka-python": Suite(KAFKA_PYTHON, kafka_python, {"num.partitions": "4"} | ACCESS_LISTS),
    "librdkafka": Suite(LIBRDKAFKA, librdkafka),
}


@contextmanager
def broker(folder: Path, settings: Mapping[str, str], *, workers: int, real: bool) -> Iterator[str]:
    """The address of a fresh broker, horolog's or Kafka's."""
    settings = {**SETTINGS, **settings}
    if real:
        with kafka.running(KAFKA, data=folder / "kafka", **settings) as node:
            yield node.address
        return
    process = BrokerProcess(folder / "data", {**settings, "horolog.workers": str(workers)}).start()
    try:
        yield process.address
    finally:
        process.kill()


def table(found: Mapping[str, Outcomes]) -> str:
    """The outcomes by suite, as a page has them."""
    rows = ["| suite | passed | failed | skipped |", "|---|---|---|---|"]
    for name, outcomes in found.items():
        counts = [sum(one == word for one in outcomes.values()) for word in (PASSED, FAILED, SKIPPED)]
        rows.append(f"| {name} {SUITES[name].version} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers")
    parser.add_argument("suite", nargs="*", choices=[[], *SUITES], help=f"{', '.join(SUITES)}; all without one")
    parser.add_argument("--kafka", action="store_true", help=f"run them against Kafka {KAFKA}")
    parser.add_argument("--workers", type=int, default=1, help="how many workers horolog has")
    given = parser.parse_args(arguments)
    found: dict[str, Outcomes] = {}
    for name in given.suite or SUITES:
        with (
            tempfile.TemporaryDirectory(prefix="peers-") as folder,
            broker(Path(folder), SUITES[name].settings, workers=given.workers, real=given.kafka) as address,
        ):
            scratch = Path(folder) / "suite"
            scratch.mkdir()
            found[name] = SUITES[name].run(address, scratch)
    failed = [f"{name}: {test}" for name, one in found.items() for test, outcome in one.items() if outcome == FAILED]
    print(table(found), *failed, sep="\n")
    return 1 if failed or not all(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
