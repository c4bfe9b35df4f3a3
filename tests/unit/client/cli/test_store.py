"""`horolog store`: what its actions print, and their exit codes."""

import json

import pytest

pytest.importorskip("obstore")

from horolog.broker.bucket.bucket_entries import BrokerRegistered
from horolog.broker.bucket.bucket_state import MemberListener
from horolog.broker.bucket.journal_objects import Founding, NumberedEntry, encode_founding, encode_log_entry
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import LOG, Wal, key
from horolog.broker.cluster.cluster_state import TopicsCreated
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.client.cli import store
from horolog.commands.exit_codes import ExitCode
from horolog.stores.opening import open_store
from tests.support.command import run_typed
from tests.support.hostile_store import ENVIRONMENT, Habit, serving

NONCE = b"n" * 16


@pytest.fixture
def check(monkeypatch, capsys):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    return lambda *arguments: run_typed(capsys, "store", "check", *arguments)


def test_a_good_store(check):
    with serving() as server:
        said = check("s3://lake/f", "--endpoint", server.endpoint, "--keys", "2")
        created = {key for method, key in server.requests if method == "PUT"}
    assert said.code == 0
    first, second, *_, last = said.out.splitlines()
    assert first == "ok: list the prefix: the credentials and the bucket are right"
    assert second.startswith(
        "ok: create 2 keys with 20 writers each at once: each key has one winner, whose bytes can be read at once; 40 req"
    )
    assert last == "ok: remove what was created: nothing is left"
    assert len(created) == 3
    assert all(key.startswith("f/check/") for key in created)


def test_a_folder_of_this_machine(check, tmp_path):
    said = check(f"file://{tmp_path}", "--keys", "2", "--writers", "3", "-o", "json")
    findings = said.lines
    assert (said.code, [one["fault"] for one in findings]) == (0, [""] * 6)
    assert findings[1]["tried"] == "create 2 keys with 3 writers each at once"


def test_a_bad_store(check):
    with serving(Habit.FORGETS_CONDITION) as server:
        said = check("s3://lake/f", "--endpoint", server.endpoint, "--keys", "2")
    assert said.code == 1
    assert "fault: create 2 keys with 20 writers each at once: 20 of 20 creates of one key succeeded" in said.out


@pytest.mark.parametrize(
    ("arguments", "said"), [(["nowhere"], "s3://BUCKET/FOLDER"), (["s3://b", "--writers", "65"], "at most 64")]
)
def test_arguments_that_make_no_sense(check, arguments, said):
    ended = check(*arguments)
    assert ended.code == 2
    assert said in ended.err


@pytest.fixture
def shared(tmp_path):
    """A folder with the journal of two brokers and a topic."""
    place = open_store(f"file://{tmp_path}")
    listener = (MemberListener("PLAINTEXT", "PLAINTEXT", "h", 9092),)
    entries = [BrokerRegistered(1, "machine1", listener, "r1"), BrokerRegistered(2, "machine2", listener)]
    entries.append(TopicsCreated((StoredTopic("t", bytes(16), 2, {}, {}),)))
    place.create(key(LOG, 0), encode_founding(Founding("c1", NONCE)))
    for number, entry in enumerate(entries, 1):
        place.create(key(LOG, number), encode_log_entry(NumberedEntry(number, entry, NONCE)))
    return f"file://{tmp_path}"


def test_the_cluster_in_a_store(shared, capsys):
    said = run_typed(capsys, "store", "ls", shared)
    assert said.code == 0
    assert said.out.splitlines()[0] == "cluster c1, entry 3 of its journal"
    assert "machine2" in said.out
    found = json.loads(run_typed(capsys, "store", "ls", shared, "-o", "json").out)
    assert found["brokers"][0]["listeners"] == "PLAINTEXT://h:9092"
    assert [one["rack"] for one in found["brokers"]] == ["r1", None]
    assert sum(one["leads"] for one in found["brokers"]) == len(found["partitions"]) == 2


def test_a_partition_without_a_leader_shows_a_dash(tmp_path, capsys):
    place = open_store(f"file://{tmp_path}")
    place.create(key(LOG, 0), encode_founding(Founding("c1", NONCE)))
    created = TopicsCreated((StoredTopic("t", bytes(16), 1, {}, {}),))
    place.create(key(LOG, 1), encode_log_entry(NumberedEntry(1, created, NONCE)))
    assert run_typed(capsys, "store", "ls", f"file://{tmp_path}").out.splitlines()[-1].split() == ["t", "0", "-", "0"]
    found = json.loads(run_typed(capsys, "store", "ls", f"file://{tmp_path}", "-o", "json").out)
    assert found["partitions"] == [{"topic": "t", "partition": 0, "leader": -1, "epoch": 0}]


def test_how_much_lies_in_a_store(shared, capsys):
    said = run_typed(capsys, "store", "du", shared)
    assert (said.code, [line.split()[:2] for line in said.out.splitlines()[1:]]) == (
        0,
        [["journal", "4"], ["all", "4"]],
    )
    (found,) = json.loads(run_typed(capsys, "store", "du", shared, "-o", "json").out)
    assert (found["kind"], found["objects"]) == ("journal", 4)


def test_a_place_without_a_cluster(tmp_path, capsys):
    said = run_typed(capsys, "store", "ls", f"file://{tmp_path}")
    assert said.code == 1
    assert "no broker has used this URL" in said.err


def test_a_journal_that_cannot_be_read(shared, tmp_path, capsys):
    (tmp_path / key(LOG, 3)).write_bytes(b"of another program")
    assert run_typed(capsys, "store", "ls", shared).code == 1


def test_a_policy_denies_what_could_overwrite(capsys):
    said = run_typed(capsys, "store", "policy", "s3://lake/f")
    (statement,) = json.loads(said.out)["Statement"]
    assert (statement["Effect"], statement["Action"], statement["Resource"]) == (
        "Deny",
        "s3:PutObject",
        "arn:aws:s3:::lake/f/*",
    )
    assert store.policy_of("lake", "")["Statement"][0]["Resource"] == "arn:aws:s3:::lake/*"
    assert run_typed(capsys, "store", "policy", "gs://lake/f").code == 2


def test_objects_kept_for_restores_are_a_kind_of_their_own(shared, capsys):
    place, newest = open_store(shared), Wal(1, 1)
    for number in range(2):
        place.create(key(newest.folder, number), b"x" * 10**6)
    place.create(key(newest.marks, 0), WalMark(newest, 0, 1, (), NONCE).encode())
    found = json.loads(run_typed(capsys, "store", "du", shared, "--month", "-o", "json").out)
    kinds = {one["kind"]: (one["objects"], one["size_bytes"]) for one in found["contents"]}
    assert kinds["write-ahead logs"] == kinds["kept for restores"] == (1, 10**6)
    assert found["month"]["history_dollars"] == pytest.approx(10**6 / 1e9 * 0.023)
    shown = run_typed(capsys, "store", "du", shared, "--month").out
    assert "kept for restores" in shown
    assert "kept for restores, included" in shown


def test_the_size_of_a_prefix_whose_journal_is_damaged(shared, tmp_path, capsys):
    (tmp_path / key(LOG, 3)).write_bytes(b"of another program")
    said = run_typed(capsys, "store", "du", shared)
    assert (said.code, "include objects kept for restores" in said.err) == (0, True)
    assert run_typed(capsys, "store", "du", shared, "--month").code == 1


def test_each_action_reaches_its_command(shared, tmp_path, capsys):
    verified = run_typed(capsys, "store", "verify", shared, "-o", "json").json
    assert verified["cluster_id"] == "c1"
    imported = run_typed(capsys, "store", "import", tmp_path / "none", shared)
    assert imported.code == ExitCode.NOT_FOUND
    exported = run_typed(capsys, "store", "export", shared, tmp_path / "folder", "--dry-run")
    assert exported.code == ExitCode.OK
    assert not (tmp_path / "folder").exists()


def test_a_month_of_what_lies_there(shared, capsys):
    said = run_typed(capsys, "store", "du", shared, "--month")
    assert said.code == 0
    assert "all requests" in said.out
    found = json.loads(run_typed(capsys, "store", "du", shared, "--month", "-o", "json", "--price-reads", "0").out)
    (kind,) = found["contents"]
    month = found["month"]
    assert month["stored_bytes"] == kind["size_bytes"]
    assert month["requests_dollars"] == pytest.approx(month["writes"] * 5 / 1e6)
    assert month["reads"] > 0
    refused = run_typed(capsys, "store", "du", shared, "--month", "--price-writes", "much")
    assert refused.code == 2
    assert "'much' is not an amount in dollars" in refused.err
