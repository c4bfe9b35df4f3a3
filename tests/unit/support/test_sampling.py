"""Which tests a run leaves out, in which order the others run, and how tests are noted that failed in a search."""

import subprocess
import sys

import pytest

from tests.support.broker_process import PROJECT
from tests.support.sampling import Share, found, is_chosen, keep

NAMES = [f"tests/wire/test_prober.py::test_case[{number}]" for number in range(300)]


def chosen(share):
    return {name for name in NAMES if share.has(name)}


@pytest.mark.parametrize("parts", [3, 5, 10])
def test_a_seed_chooses_a_share_of_the_tests_and_others_choose_others(parts):
    shares = [chosen(Share(str(seed), parts)) for seed in range(20 * parts)]
    assert all(0.4 < len(share) * parts / len(NAMES) < 1.7 for share in shares)
    assert set().union(*shares) == set(NAMES)
    assert shares[0] == {name for name in NAMES if is_chosen("0", name, parts)}


def test_without_a_seed_every_test_runs():
    assert chosen(Share()) == set(NAMES)


def test_of_cases_one_in_some_is_enough_in_a_share_and_without_one():
    def cases(share):
        return {name for name in NAMES if share.has(name, 3)}

    assert cases(Share()) == set(NAMES)
    assert cases(Share(cases_seed="5")) == {name for name in NAMES if is_chosen("5", name, 3)}
    assert cases(Share("7", 5, cases_seed="5")) == cases(Share(cases_seed="5")) & chosen(Share("7", 5))
    assert cases(Share("7", 5, "5", frozenset(NAMES))) == set(NAMES)


def test_named_tests_and_files_belong_to_every_share():
    one = next(name for name in NAMES if not is_chosen("7", name))
    assert one in chosen(Share("7", always=frozenset({one})))
    assert chosen(Share("7", always=frozenset({"tests/wire/test_prober.py"}))) == set(NAMES)


def test_where_time_is_limited_files_change_places_and_named_ones_come_first():
    files = [f"tests/cli/test_{number}.py" for number in range(30)]
    orders = [sorted(files, key=Share(seed).place) for seed in "123"]
    assert len(set(map(tuple, orders))) == 3
    last = orders[0][-1]
    assert min(files, key=Share("1", always=frozenset({last})).place) == last
    assert len({Share("1").place(name) for name in NAMES}) == 1


def test_a_test_that_failed_is_noted_once_and_stays_so_until_someone_removes_it(tmp_path):
    path = tmp_path / "found.txt"
    assert list(found(path)) == []
    path.write_text("# of searches\n\n")
    keep([NAMES[0], NAMES[0]], path)
    keep([NAMES[0], NAMES[1]], path)
    assert list(found(path)) == NAMES[:2]
    path.write_text(f"{NAMES[2]}  # why\n")
    assert list(found(path)) == [NAMES[2]]


def test_a_run_whose_time_is_over_skips_the_rest_and_says_why():
    command = [
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--seconds",
        "-1",
        __file__,
        "-k",
        "share",
    ]
    done = subprocess.run([sys.executable, *command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: -1 s have gone by" in done.stdout
    assert " passed" not in done.stdout
