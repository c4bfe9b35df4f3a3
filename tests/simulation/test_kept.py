"""Seeds that failed once are kept in a file, and run again for good."""

import pytest

from tests.simulation.kept import Kept, keep, kept
from tests.simulation.runs import run_seed


@pytest.mark.parametrize("one", list(kept()), ids=str)
def test_a_seed_that_failed_once_passes(one: Kept) -> None:
    result = run_seed(one.seed, one.steps, one.workers)
    assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))


def test_a_seed_is_kept_once(tmp_path):
    path = tmp_path / "seeds.txt"
    assert not list(kept(path))
    for seed in (7, 8, 7):
        keep(seed, 120, 2, path)
    assert list(kept(path)) == [Kept(2, 120, 7), Kept(2, 120, 8)]


def test_what_people_write_beside_it_is_not_read(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("# seeds\n\n1 50 3  # why\n")
    assert list(kept(path)) == [Kept(1, 50, 3)]


def test_a_line_that_is_none_is_an_error(tmp_path):
    path = tmp_path / "seeds.txt"
    path.write_text("1 50\n")
    with pytest.raises(ValueError, match="not enough values"):
        list(kept(path))
