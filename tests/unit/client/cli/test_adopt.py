"""`horolog adopt` on folders: what it says of them, what it refuses, and that the folders are ready for the next start what was given."""

import json
import shutil

import pytest

from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.log.storage import RealStorage
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.commands.exit_codes import ExitCode
from horolog.testing import broker_in_thread
from tests.support import golden
from tests.support.kraft import FOLDER, log, topic

ID = bytes(range(16))
OLD_MS = 1_600_000_000_000


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where the first test that needs the folder keeps it for the others."""
    return tmp_path_factory.mktemp("adopted") / "data"


@pytest.fixture
def folder(kept, start_broker, horolog, tmp_path):
    """Two topics with records of the year 2020, without a word about their settings."""
    if not kept.exists():
        written = tmp_path / "written"
        write(written, start_broker(written, log__retention__ms=-1), horolog, tmp_path)
        written.rename(kept)
    return shutil.copytree(kept, tmp_path / "data")


def write(folder, broker, horolog, tmp_path):
    for name in ("orders", "prices"):
        assert horolog("topics", "create", name, "-b", broker.address).code == 0
        lines = [json.dumps({"key": "k", "value": "v" * 50, "timestamp": OLD_MS + n}) + "\n" for n in range(20)]
        (tmp_path / "lines").write_text("".join(lines))
        sent = horolog("produce", name, tmp_path / "lines", "--format", "json", "-b", broker.address)
        assert sent.code == 0, sent
    assert broker.stop() == 0
    (folder / "horolog-cluster").unlink()


def stored(folder):
    return {name: dict(one.overrides) for name, one in ClusterFile(RealStorage(), str(folder)).load().topics.items()}


def topics_of(ended):
    return {one["topic"]: one for one in ended.json["topics"]}


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_look_changes_nothing(folder, horolog):
    before = everything(folder)
    ended = horolog("adopt", folder, "--dry-run", "-o", "json")
    assert ended.code == ExitCode.ALERT
    assert everything(folder) == before
    found = topics_of(ended)
    assert {name: one["settings_known"] for name, one in found.items()} == {"orders": False, "prices": False}
    assert found["orders"]["largest_timestamp"] == OLD_MS + 19
    assert found["orders"]["settings_from"] == "unknown"
    assert ended.json["summary"] == {"topics": 2, "settings_unknown": 2, "expiring_bytes": 0, "unreadable": 0}
    text = horolog("adopt", folder, "-n", "--tz", "UTC").out
    assert "nothing expires" in text
    assert "2020-09-13T12:26:40.019" in text
    assert "nothing was written" in text


def test_given_settings_are_known_to_the_next_start_and_what_goes_is_foretold(folder, horolog, start_broker, tmp_path):
    given = tmp_path / "given"
    given.write_text("Configs for topic 'orders' are retention.ms=-1\nConfigs for topic 'prices' are \n")
    foretold = horolog("adopt", folder, "--settings", given, "--dry-run", "-o", "json")
    assert topics_of(foretold)["orders"]["expiring"] == []
    (gone,) = topics_of(foretold)["prices"]["expiring"]
    assert gone["offsets"] == 20
    assert gone["because_of"] == ["time"]
    assert not (folder / "horolog-cluster").exists()
    assert horolog("adopt", folder, "--settings", given).code == ExitCode.ALERT
    assert stored(folder) == {"orders": {"retention.ms": "-1"}, "prices": {}}
    settings = {"log__initial__task__delay__ms": 100, "log__retention__check__interval__ms": 100}
    broker = start_broker(folder, **settings)
    at = ("-b", broker.address)
    described = horolog("topics", "describe", "orders", "-o", "json", *at).json[0]
    assert described["configs"] == {"retention.ms": "-1"}
    assert described["settings_unknown"] is False
    assert len(horolog("consume", "orders", "--since", "earliest", "--until", "now", *at).out.splitlines()) == 20
    assert "settings unknown" not in horolog("topics", "describe", "prices", *at).out


def test_the_settings_of_the_broker_count_where_topics_say_nothing(folder, horolog, tmp_path):
    given = tmp_path / "given.json"
    given.write_text('{"orders": {}, "prices": {"cleanup.policy": "compact"}}')
    words = ("adopt", folder, "-n", "--settings", given, "-o", "json")
    assert topics_of(horolog(*words))["orders"]["in_force"]["retention.ms"] == "604800000"
    kept = horolog(*words, "--set", "log.retention.ms=-1")
    assert kept.code == ExitCode.OK
    assert topics_of(kept)["orders"]["in_force"]["retention.ms"] == "-1"
    (tmp_path / "server.properties").write_text("log.retention.ms=-1\n")
    assert horolog(*words, "--config", tmp_path / "server.properties").code == ExitCode.OK


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"orders": {"retention.mss": "1"}}', ("orders", "retention.mss")),
        ('{"orders": {"retention.ms": "soon"}}', ("orders", "retention.ms", "soon")),
        ("nonsense\n", ("line 1", "nonsense")),
        ('[{"key": "retention.ms", "value": "1"}]', ("names no topic",)),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(folder, horolog, tmp_path, text, words):
    given = tmp_path / "given"
    given.write_text(text)
    before = everything(folder)
    ended = horolog("adopt", folder, "--settings", given)
    assert ended.code == ExitCode.USAGE
    assert all(word in ended.err for word in words), ended
    assert everything(folder) == before


def test_our_own_lists_are_taken(folder, horolog, tmp_path, start_broker):
    """What `configs list` and `topics describe` print of a topic, of one that has its settings."""
    broker = start_broker()
    at = ("-b", broker.address)
    assert horolog("topics", "create", "orders", "-c", "retention.ms=7", *at).code == 0
    (tmp_path / "described").write_text(horolog("topics", "describe", "orders", "-o", "json", *at).out)
    listed = horolog("configs", "list", "topic", "orders", "-o", "json", *at).out
    ended = horolog("adopt", folder, "--settings", tmp_path / "described", "-o", "json")
    assert topics_of(ended)["orders"]["settings"] == {"retention.ms": "7"}
    (tmp_path / "listed").write_text(listed)
    ended = horolog("adopt", folder, "--settings", tmp_path / "listed", "-o", "json")
    assert topics_of(ended)["prices"]["settings"] == {"retention.ms": "7"}  # the only one left without


def test_settings_that_are_known_stay(folder, horolog, tmp_path):
    given = tmp_path / "given"
    given.write_text('{"orders": {"retention.ms": "-1"}, "elsewhere": {}}')
    ended = horolog("adopt", folder, "--settings", given)
    assert "elsewhere" in ended.out
    given.write_text('{"orders": {"retention.ms": "5"}}')
    ended = horolog("adopt", folder, "--settings", given)
    assert "not used" in ended.out
    assert stored(folder) == {"orders": {"retention.ms": "-1"}, "prices": {SETTINGS_UNKNOWN: "true"}}


def test_a_running_broker_is_only_looked_at(folder, horolog, start_broker):
    start_broker(folder)
    assert horolog("adopt", folder, "-n").code == ExitCode.ALERT
    ended = horolog("adopt", folder)
    assert ended.code == ExitCode.FAILED
    assert "in use" in ended.err


def test_kraft_metadata_and_what_cannot_be_read(folder, horolog):
    (folder / FOLDER).mkdir()
    metadata = log([*topic("orders", ID, 2, {"retention.ms": "1"}), *topic("elsewhere", bytes(16))])
    (folder / FOLDER / f"{0:020}.log").write_bytes(metadata)
    shutil.rmtree(folder / "prices-0")
    (folder / "orders-0" / "partition.metadata").unlink()
    ended = horolog("adopt", folder, "-n", "-o", "json")
    assert ended.code == ExitCode.ALERT
    orders = topics_of(ended)["orders"]
    assert (orders["settings"], orders["settings_from"]) == ({"retention.ms": "1"}, "KRaft metadata")
    assert (orders["partitions"], orders["folders"]) == (2, 1)
    assert ended.json["summary"]["expiring_bytes"] == orders["size_bytes"] > 0
    assert "no folder here for 1 of 2 partitions" in horolog("adopt", folder, "-n").out


def test_several_folders_are_told_together(horolog, start_broker, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    broker = start_broker(a, log__dirs=f"{a},{b}")
    for name in ("orders", "prices"):
        assert horolog("topics", "create", name, "--partitions", "4", "-b", broker.address).code == 0
    assert broker.stop() == 0
    for one in (a, b):
        (one / "horolog-cluster").unlink()
    before = everything(a) | everything(b)
    ended = horolog("adopt", a, b, "--dry-run", "-o", "json")
    assert ended.json["data_folders"] == [str(a), str(b)]
    told = {name: (one["partitions"], one["folders"]) for name, one in topics_of(ended).items()}
    assert told == {"orders": (4, 4), "prices": (4, 4)}
    assert topics_of(horolog("adopt", b, a, "-n", "-o", "json")) == topics_of(ended)
    assert "have no folder here" not in horolog("adopt", b, a, "-n").out
    assert "no folder here for" in horolog("adopt", a, "-n").out
    assert everything(a) | everything(b) == before


def test_folders_that_are_none(horolog, tmp_path):
    assert horolog("adopt", tmp_path / "nowhere").code == ExitCode.NOT_FOUND
    ended = horolog("adopt", tmp_path, "-n")
    assert (ended.code, "0 topics" in ended.out) == (ExitCode.OK, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--set", "nothing"), ExitCode.USAGE, "--set 'nothing' is not KEY=VALUE"),
        (("--set", "log.retention.ms=soon"), ExitCode.USAGE, "log.retention.ms"),
        (("--settings", "{none}"), ExitCode.NOT_FOUND, "there is no file"),
        (("--settings", "{folder}"), ExitCode.FAILED, "cannot be read"),
    ],
)
def test_what_is_given_is_read_before_the_folder(horolog, tmp_path, words, code, said):
    (tmp_path / "data").mkdir()
    given = [word.format(none=tmp_path / "none", folder=tmp_path) for word in words]
    ended = horolog("adopt", tmp_path / "data", "-n", *given)
    assert (ended.code, said in ended.err) == (code, True), ended


def test_the_folder_of_one_partition_is_not_a_data_folder(golden_root, horolog):
    ended = horolog("adopt", golden_root / "v2-txn" / "clean", "-n")
    assert (ended.code, "is the folder of one partition; name the data folder above it" in ended.err) == (4, True)


def test_damage_is_named_with_its_partition(golden_root, horolog, tmp_path):
    golden.Case("v2-multiseg", golden_root).copy("clean", tmp_path / "data")
    log = min((tmp_path / "data" / "topic-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[400] ^= 1
    log.write_bytes(data)
    ended = horolog("adopt", tmp_path / "data", "-n", "-o", "json")
    (found,) = topics_of(ended)["topic"]["unreadable"]
    assert found["partition"] == 0
    assert "bytes of segment 0 are damaged" in found["reason"]
    shown = horolog("adopt", tmp_path / "data", "-n").out
    assert "topic-0 cannot be read: 113 bytes of segment 0 are damaged" in shown


def test_settings_in_force_are_shown(horolog, golden_root, tmp_path):
    golden.Case("v2-multiseg", golden_root).copy("clean", tmp_path / "data")
    given = tmp_path / "given.json"
    for settings, shown in (
        ('{"topic": {"cleanup.policy": "compact"}}', "latest value per key"),
        ('{"topic": {"retention.ms": "-1", "retention.bytes": "5"}}', "ever, 5 bytes"),
    ):
        given.write_text(settings)
        assert shown in horolog("adopt", tmp_path / "data", "-n", "--settings", given).out


def test_a_folder_that_kraft_left_is_taken_over(golden_root, horolog, tmp_path):
    data = tmp_path / "data"
    golden.Case("v2-multiseg", golden_root).copy("clean", data)
    (data / FOLDER).mkdir()
    (data / FOLDER / f"{0:020}.log").write_bytes(log([*topic("topic", ID, 1, {"retention.ms": "-1"})]))
    ended = horolog("adopt", data)
    assert ended.code in {ExitCode.OK, ExitCode.ALERT}, ended
    assert stored(data)["topic"] == {"retention.ms": "-1"}
    again = horolog("adopt", data, "-n", "-o", "json")
    assert again.json["kraft"]["changed_since"] is False
    assert again.json["on_record"] is True


def test_settings_of_brokers_that_the_folder_has_count(horolog, tmp_path):
    data = tmp_path / "data"
    with broker_in_thread(storage=data) as broker:
        broker.create_topic("t")
        words = ("configs", "set", "broker", "all", "log.retention.ms=77", "-b", broker.bootstrap)
        assert horolog(*words).code == 0
    ended = horolog("adopt", data, "-n", "-o", "json")
    assert topics_of(ended)["t"]["in_force"]["retention.ms"] == "77"
    assert ended.json["broker_configs"][""] == {"log.retention.ms": "77"}
