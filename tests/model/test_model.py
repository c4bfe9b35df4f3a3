"""The protocol of brokers over one store, as a model: no promise is broken, and each planted bug breaks one."""

import pytest

from tests.model.exploring import BUGS, SCENARIOS, explore, main, walk

QUICK = ("local", "manifest", "sweep")
LONG = ("hand",)
FOUND_BY_WALKS = ("conflict_is_taken", "ack_out_of_order", "merge_unsafe")


def marks(name):
    return [] if name in QUICK else [pytest.mark.slow, pytest.mark.long] if name in LONG else [pytest.mark.slow]


def test_walks_keep_the_promise_and_get_somewhere():
    walks = [walk(seed) for seed in range(600)]
    assert [one.labels for one in walks if one.broken] == []
    assert sum(len(one.state.journal) for one in walks) > 1_500
    assert sum(len(one.state.told) for one in walks) > 2_500


@pytest.mark.parametrize("bug", FOUND_BY_WALKS)
def test_walks_find_planted_bugs(bug):
    assert any(walk(seed, bug).broken for seed in range(300))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [pytest.param(one, marks=marks(one)) for one in SCENARIOS])
def test_no_interleaving_breaks_the_promise(name):
    explored = explore(SCENARIOS[name])
    assert explored.broken == []
    assert explored.is_complete
    assert explored.states > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_each_planted_bug_is_found(bug):
    explored = explore(SCENARIOS[BUGS[bug]], bug)
    assert explored.broken, f"{explored.states} states"
    assert explored.broken[-1].startswith(("offset ", "two records at offset "))


def test_the_program_says_what_it_has_seen(capsys):
    assert not main("walk", "20")
    assert "20 walks" in capsys.readouterr().out
    assert main("walk", "2", "sweep_any_epoch"), "two walks do not find it"
    assert not main("bugs", "local")
    assert "ok    local     local_tail_kept" in capsys.readouterr().out
