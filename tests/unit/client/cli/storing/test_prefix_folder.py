"""`horolog dump` and `horolog doctor` on a prefix: they show what they show of the folder that it came from."""

import json
import shutil

import pytest

pytest.importorskip("obstore")

from horolog.client.cli.main import main
from horolog.client.cli.storing.prefix_folder import means
from horolog.commands.exit_codes import ExitCode
from horolog.testing import broker_in_thread
from tests.support.command import run_typed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a broker that has stopped, and below it a store with the same topics."""
    made = tmp_path_factory.mktemp("made")
    with broker_in_thread(storage=made / "data") as broker:
        broker.create_topic("t", 2, retention_ms=-1)
        broker.create_topic("other", 1)
        lines = made / "lines"
        lines.write_text("".join(f"{number}\n" for number in range(10)))
        assert main(["produce", "t", str(lines), "-p", "0", "-b", broker.bootstrap]) == ExitCode.OK
    (made / "store").mkdir()
    assert main(["store", "import", str(made / "data"), f"file://{made}/store"]) == ExitCode.OK
    return made


@pytest.fixture
def url(folder):
    return f"file://{folder}/store"


@pytest.fixture
def typed(capsys):
    capsys.readouterr()
    return lambda *words: run_typed(capsys, *words)


def items(done):
    """The lines of JSON, without what names the place."""
    found = [json.loads(line) for line in done.out.splitlines()]
    return [{key: value for key, value in one.items() if key not in ("file", "path")} for one in found]


def test_a_dump_shows_the_same_records(folder, url, typed):
    here = typed("dump", folder / "data" / "t-0" / f"{0:020d}.log", "--print-data-log", "-o", "json")
    there = typed("dump", url, f"t-0/{0:020d}.log", "--print-data-log", "-o", "json")
    assert (there.code, there.err) == (ExitCode.OK, "")
    assert sum(one["type"] == "record" for one in items(there)) == 10
    assert items(there) == items(here)


def test_a_dump_of_a_topic_has_the_files_of_its_partitions(url, typed):
    done = typed("dump", url, "t", "-o", "json")
    assert done.code == ExitCode.OK
    paths = [one["path"] for one in map(json.loads, done.out.splitlines()) if one["type"] == "file"]
    assert {one.removeprefix(f"{url}/").partition("/")[0] for one in paths} == {"t-0", "t-1"}
    assert {"horolog-seals", "leader-epoch-checkpoint", f"{0:020d}.timeindex"} <= {
        one.rpartition("/")[2] for one in paths
    }


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), ExitCode.USAGE, "name topics, partitions or files"),
        (("none",), ExitCode.NOT_FOUND, "has no none"),
        (("t-0/none",), ExitCode.NOT_FOUND, "has no t-0/none"),
    ],
)
def test_a_dump_of_something_else(url, typed, words, code, said):
    done = typed("dump", url, *words)
    assert done.code == code
    assert said in done.err


def test_doctor_finds_nothing_wrong(url, typed):
    done = typed("doctor", url, "-o", "json")
    assert (done.code, done.err) == (ExitCode.OK, "")
    found = json.loads(done.out)
    assert {one["name"]: one["next_offset"] for one in found["partitions"]}["t-0"] == 10
    assert [one["findings"] for one in found["partitions"]] == [[]] * len(found["partitions"])
    assert typed("doctor", url, "--topic", "t").out.endswith("none damaged\n")


def test_doctor_finds_damage(folder, tmp_path, typed):
    store = shutil.copytree(folder / "store", tmp_path / "store")
    (log,) = store.rglob("*.log")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    done = typed("doctor", f"file://{store}")
    assert done.code == ExitCode.ALERT
    assert "t-0" in done.out
    assert "1 damaged" in done.out


def test_doctor_repairs_no_prefix(url, typed):
    done = typed("doctor", url, "--repair")
    assert done.code == ExitCode.USAGE
    assert "objects of a prefix are never changed" in done.err
    assert typed("doctor", url, "--topic", "none").code == ExitCode.NOT_FOUND


@pytest.mark.parametrize("command", [("doctor",), ("dump",)])
def test_other_places(tmp_path, typed, command):
    more = ("t",) if command == ("dump",) else ()
    (tmp_path / "empty").mkdir()
    assert "no broker has used this URL" in typed(*command, f"file://{tmp_path}/empty", *more).err
    done = typed(*command, "nowhere://x", *more)
    assert done.code == ExitCode.USAGE
    assert "expected " in done.err


def test_a_damaged_prefix_is_named(folder, tmp_path, typed):
    store = shutil.copytree(folder / "store", tmp_path / "store")
    for one in (store / "manifest").rglob("*"):
        if one.is_file():
            one.write_bytes(b"x")
    done = typed("doctor", f"file://{store}")
    assert done.code == ExitCode.FAILED
    assert "horolog store verify" in done.err


def test_names():
    assert means("t", "t", 3)
    assert means("t-3", "t", 3)
    assert means("t-3/x.log", "t", 3)
    assert not means("t-3", "t", 4)
    assert not means("t", "u", 0)
