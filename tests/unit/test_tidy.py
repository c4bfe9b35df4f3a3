"""The tree stays tidy: small classes, clocks that are given, nothing that nobody uses, and lists of exceptions that hold nothing that is none."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from tests.support import style, tidy

PACKAGES = style.PROJECT / "horolog"


def trees():
    """The modules of the product by their paths below `horolog`."""
    paths = [path for path in style.python_files() if PACKAGES in path.parents]
    return {str(path.relative_to(PACKAGES)): ast.parse(path.read_bytes()) for path in paths}


@pytest.fixture(scope="module")
def modules():
    return trees()


def parsed(text):
    return ast.parse(textwrap.dedent(text))


MANY_METHODS: dict[str, str] = {
    "broker/log/storage/real_file.py: RealFile": "it has every call of a file; what sends slices could be apart",
}


def test_classes_have_few_methods(modules):
    found = [(path, one) for path, tree in modules.items() for one in tidy.methods(tree)]
    large = {f"{path}: {one.name}" for path, one in found if one.amount > tidy.MAX_METHODS}
    assert large == MANY_METHODS.keys(), (
        "split the class by its nouns; take off the list whatever is no exception any more"
    )


def test_every_def_of_a_class_counts():
    tree = parsed("""
        class Outer:
            class Inner:
                def a(self): ...

            size = 1

            def __init__(self): ...

            @property
            def b(self): ...

            @b.setter
            def b(self, value): ...

            async def c(self):
                def inner(): ...

            if size:
                def d(self): ...

        def loose(): ...
    """)
    assert sorted(tidy.methods(tree)) == [("Inner", 1), ("Outer", 4)]


MANY_ARGUMENTS = {
    "broker/groups/offsets.py: Committed.__init__": "one for each field of the record that is kept",
    "client/producing/accumulator.py: Pending.__init__": "made for every record sent, and keywords would cost",
    "client/wire/client.py: Client.__init__": "the client's settings, by keyword",
    "client/consuming/consumer.py: Consumer.__init__": "the consumer's settings, by keyword",
    "client/decoding/protobuf.py: _Reader._field": "called for every field of every record, and an object would cost",
    "client/decoding/protobuf.py: _Reader._unknown": "as the one above",
    "client/producing/producer.py: Producer.__init__": "the producer's settings, by keyword",
    "pipeline/jobs/archive.py: archive": "the job's options, by keyword",
}


def test_functions_have_few_arguments(modules):
    found = [(path, one) for path, tree in modules.items() for one in tidy.arguments(tree)]
    many = {
        f"{path}: {name}"
        for path, (name, positional, together) in found
        if positional > tidy.MAX_POSITIONAL or together > tidy.MAX_ARGUMENTS
    }
    assert many == MANY_ARGUMENTS.keys(), (
        "pass a value that has a name, or name them; take off the list whatever is no exception any more"
    )


def test_arguments_are_counted():
    tree = parsed("""
        class C:
            def method(self, a, /, b, *rest, c=1, **others):
                def inner(d, *, e): ...

            @classmethod
            async def made(cls, a): ...

        def loose(self_like, b): ...
    """)
    assert sorted(tidy.arguments(tree)) == [("C.made", 1, 1), ("C.method", 2, 3), ("inner", 1, 2), ("loose", 2, 2)]


CLOCK_OWNERS = {
    "base/clock.py": "the clock that everything is given",
    "broker/base/malloc.py": "it compares the processor's time of the process with the machine's",
    "broker/bucket/lease.py": "a lease is counted on the clock that goes on while the machine sleeps",
    "broker/log/storage/storage.py": "the file system dates files by the machine's clock",
    "broker/observability/logs.py": "lines are logged before there is a broker with a clock",
    "broker/observability/loop_lag.py": "it measures the event loop by the loop's own clock",
    "client/cli/": "a command tells its user how long something took",
    "commands/": "so does what commands share",
    "client/decoding/registry.py": "how long a failure is remembered; no log and no broker goes by it",
    "pipeline/": "a job is a process of its own, beside Spark, and no broker's clock reaches it",
    "testing/expecting.py": "a test waits by the machine's time, however the clock of its broker stands",
    "testing/clock.py": "the clock of an embedded broker goes with the machine's until it is set",
}
"""Modules, and folders of modules, that may read a clock of the machine."""


def owner_of(path):
    return next((one for one in CLOCK_OWNERS if path == one or (one.endswith("/") and path.startswith(one))), None)


def test_a_clock_is_given(modules):
    reads = {path: list(tidy.clock_reads(tree)) for path, tree in modules.items()}
    found = {path: names for path, names in reads.items() if names}
    assert {path: names for path, names in found.items() if owner_of(path) is None} == {}, "pass the clock"
    assert CLOCK_OWNERS.keys() == {owner_of(path) for path in found}, (
        "some read no clock any more: take them off the list"
    )


@pytest.mark.parametrize(
    "line",
    [
        "began = time.monotonic()",
        "def f(now=time.time): ...",
        "from time import sleep, perf_counter_ns",
        "datetime.datetime.now(UTC)",
        "due = self._loop.time() + 1",
        "asyncio.get_running_loop().time()",
    ],
)
def test_reads_of_a_clock_are_found(line):
    assert len(list(tidy.clock_reads(ast.parse(line)))) == 1


@pytest.mark.parametrize(
    "line", ["clock.monotonic()", "self._clock.now()", "from time import sleep", "record.time", "time.sleep(1)"]
)
def test_a_clock_that_was_given_is_no_read(line):
    assert not list(tidy.clock_reads(ast.parse(line)))


TEXT = frozenset({".md", ".toml", ".yml", ".yaml", ".sh", ".json", ".service", ".py", ".csv", ".cfg", ""})


@pytest.fixture(scope="module")
def files():
    """What git tracks, as text, by paths below the project; the changelog tells of files that are gone, too."""
    paths = [path for path in style.tracked_files() if path.suffix in TEXT and path.name != "CHANGELOG.md"]
    return {path.relative_to(style.PROJECT): path.read_text("utf-8", "ignore") for path in paths}


def product(files):
    return {
        path: text
        for path, text in files.items()
        if path.parts[0] in {"horolog", "pyspark_horolog"} and path.suffix == ".py"
    }


def beside_code(files):
    """Pages, build and configuration files."""
    return "\n".join(text for path, text in files.items() if path.suffix != ".py")


def test_no_module_is_dead(modules, files):
    trees = {Path("horolog", path): tree for path, tree in modules.items()}
    assert list(tidy.dead_modules(trees, beside_code(files))) == []


def test_dead_modules_are_found():
    sources = {
        "p/__init__.py": "TABLE = {'lazy': 'p.lazily', 'one': 'stem'}",
        "p/__main__.py": "from p import used\nimport p.also",
        "p/used.py": "", "p/also.py": "", "p/lazily.py": "", "p/stem.py": "", "p/script.py": "", "p/entry.py": "",
        "p/alone.py": "import p.alone", "p/entry_not.py": "",
    }  # fmt: skip
    trees = {Path(path): ast.parse(text) for path, text in sources.items()}
    pages = 'run `python -m p.script`\nscripts = "p.entry:main"'
    assert [str(path) for path in tidy.dead_modules(trees, pages)] == ["p/alone.py", "p/entry_not.py"]


def test_no_help_for_tests_is_dead(files):
    text = "\n".join(files.values())
    used = set(re.findall(r"tests\.support\.(\w+)", text))
    for names in re.findall(r"from tests\.support import ([^\n(]+|\([^)]*\))", text):
        used.update(re.findall(r"\w+", names))
    helpers = [path for path in files if path.parts[:2] == ("tests", "support") and path.suffix == ".py"]
    assert [path for path in helpers if path.stem not in used] == []
    assert len(helpers) > 20


def test_every_file_of_data_configuration_and_docs_is_named(files):
    folders = ("docs", "config", "tests/data")
    drawn = "docs/images/diagrams"  # pictures are named for what they show: tests/unit/tools/test_docs_site.py
    kept = [path.relative_to(style.PROJECT) for path in style.tracked_files()]
    kept = [path for path in kept if str(path).startswith(folders) and not str(path).startswith(drawn)]
    unnamed = [path for path in kept if not any(path.name in text for other, text in files.items() if other != path)]
    assert unnamed == []
    assert len(kept) > 20


LONE = {
    "broker/coordination/timers.py: next_due": "a loop of somebody else's asks: the simulation's, a test's",
    "broker/log/storage/storage.py: open_files": "tests hold the bound on descriptors against it",
    "console/rendering.py: dump_bytecode": "Jinja calls it",
    "console/serving.py: capture_signals": "uvicorn calls it",
    "client/wire/http_get.py: makefile": "http.client calls it",
    "client/consuming/consumer.py: seek_to_end": "the consumer's public interface",
    "pipeline/sources/source.py: pushFilters": "Spark calls it",
    "pipeline/sources/source.py: streamReader": "Spark calls it",
    "pipeline/sources/source.py: streamWriter": "Spark calls it",
    "pipeline/stores/hdfs_io.py: new_input": "pyiceberg calls it",
    "pipeline/stores/hdfs_io.py: new_output": "pyiceberg calls it",
    "pipeline/stores/store.py: readinto": "io calls it",
    "pipeline/stores/store.py: seekable": "io calls it",
    "pipeline/reading/stream.py: getDefaultReadLimit": "Spark calls it",
    "pipeline/reading/stream.py: prepareForTriggerAvailableNow": "Spark calls it",
    "pipeline/reading/stream.py: reportLatestOffset": "Spark calls it",
    "broker/network/transport.py: get_buffer": "the event loop calls it",
    "broker/network/transport.py: buffer_updated": "the event loop calls it",
    "base/acl_types.py: _missing_": "Python calls it for a number without a word",
    "protocol/apis.py: request_header_version": "tests and benchmarks write headers as clients do",
    "protocol/messages/headers.py: ResponseHeader": "the declaration beside the faster reader that serves",
    "protocol/records/control.py: encode_leader_change": "tests make a Kafka's log with it",
    "testing/plugin.py: pytest_addoption": "pytest calls it",
    "testing/plugin.py: pytest_configure": "pytest calls it",
    "commands/arguments.py: _check_value": "argparse calls it",
    "commands/arguments.py: _fill_text": "argparse calls it",
}
"""Definitions that no other code of the product and no page names. Messages are found by the names of their APIs."""


def test_nothing_is_defined_for_nobody(files):
    lone = tidy.lone_definitions(product(files), beside_code(files))
    found = {
        f"{'/'.join(path.parts[1:])}: {name}"
        for path, name in lone
        if path.parts[2] != "messages" or name == "ResponseHeader"
    }
    assert found == LONE.keys(), "remove it, or say who uses it; take off the list whatever is used"


def test_lone_definitions_are_found():
    sources = {
        Path("a.py"): "def used(): ...\ndef lone(): ...\nclass C:\n    def shown(self): ...",
        Path("b.py"): "used(C)",
    }
    assert list(tidy.lone_definitions(sources, "see `shown`")) == [(Path("a.py"), "lone")]


SHOWN = {
    "broker/commit/committer.py": {"Committer"},
    "broker/groups/classic_group.py": {"ClassicGroup"},
    "broker/groups/consumer_group.py": {"ConsumerGroup"},
    "broker/groups/coordinator.py": {"GroupCoordinator"},
    "broker/groups/decision.py": {"GroupTimer"},
    "broker/handlers/context.py": {"RequestContext"},
    "broker/handlers/fetch.py": {"PendingFetch"},
    "broker/handlers/produce.py": {"Produced"},
    "broker/log/manager/data_folder.py": {"DataFolder"},
    "broker/log/partition/condition.py": {"Condition"},
    "broker/log/partition/durability.py": {"Durability"},
    "broker/log/partition/partition.py": {"Partition"},
    "broker/log/partition/sync_state.py": {"SyncState"},
    "broker/log/segments/segment.py": {"Segment"},
    "broker/network/conversation.py": {"Conversation"},
    "broker/commit/waiting.py": {"Wait", "WaitingRequests"},
}
"""Objects with a state that one looks at while debugging."""


def test_what_one_debugs_with_shows_its_state(modules):
    shown = {path: set(tidy.with_repr(modules[path])) for path in SHOWN}
    assert {path: names - shown[path] for path, names in SHOWN.items() if names - shown[path]} == {}


def test_classes_that_show_themselves_are_found():
    tree = parsed("""
        class A:
            def __repr__(self): ...

        class B(A):
            def __str__(self): ...
    """)
    assert list(tidy.with_repr(tree)) == ["A"]
