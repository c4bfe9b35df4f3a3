"""`horolog backup list` and `verify`."""

import pytest

pytest.importorskip("obstore")

from horolog.commands.exit_codes import ExitCode
from tests.support import backed_up_folder
from tests.support.command import run_typed


@pytest.fixture
def copy(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    for _ in range(2):
        run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy")
    return tmp_path / "copy"


def test_moments_are_listed(copy, capsys):
    shown = run_typed(capsys, "backup", "list", copy)
    heading, newest, oldest = shown.out.splitlines()
    assert heading.split() == ["MOMENT", "TIME", "PARTITIONS", "BYTES", "EXACT"]
    assert (newest.split()[0], oldest.split()[0], newest.split()[-1]) == ("1", "0", "yes")
    assert [one["number"] for one in run_typed(capsys, "backup", "list", copy, "-o", "json").json] == [1, 0]


@pytest.mark.parametrize("action", ["list", "verify"])
def test_no_moment(tmp_path, capsys, action):
    said = run_typed(capsys, "backup", action, tmp_path / "none")
    assert (said.code, "has no backup" in said.err) == (ExitCode.NOT_FOUND, True)


def test_all_is_there(copy, capsys):
    one = run_typed(capsys, "backup", "verify", copy)
    assert (one.code, one.out.startswith("moment 1, 1 object, ")) == (ExitCode.OK, True)
    assert one.out.endswith("nothing is missing or damaged\n")
    both = run_typed(capsys, "backup", "verify", copy, "--all")
    assert both.out.startswith("2 moments, 1 object, ")


def test_damage_is_reported(copy, capsys):
    (one,) = (copy / "data").iterdir()
    data = bytearray(one.read_bytes())
    data[9] ^= 1
    one.write_bytes(data)
    said = run_typed(capsys, "backup", "verify", copy)
    assert (said.code, said.out.startswith("damaged: data/")) == (ExitCode.ALERT, True)
    one.unlink()
    said = run_typed(capsys, "backup", "verify", copy, "-o", "json")
    assert (said.code, said.json["is_whole"]) == (ExitCode.ALERT, False)
    assert said.json["findings"][0]["kind"] == "missing"
