"""The table of scenarios fits the generator, and percentiles are what they say."""

import struct

import pytest

from benchmarks import compare, frames, load, second_opinion
from benchmarks.scenarios import SCENARIOS, SHORT

BATCH_AT = len(frames.batch(frames.payloads(100, 1), 0)) + 8
"""A partition's number and the size of its records stand before them."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_generator_takes_every_scenario(scenario):
    mode, options = load.parse([*scenario.arguments, "--address", "127.0.0.1:1", *scenario.kafka_topic])
    assert mode in load.MODES
    assert options.connections >= 1
    names = {one.name for one in SCENARIOS}
    assert all(target.against in scenario.kafka or target.against in names for target in scenario.targets)
    assert all(target.metric in SHORT for target in scenario.targets)


def produced(*arguments):
    _, options = load.parse(["raw", "--address", "a:1", *arguments])
    return load._produce_load(options, "t", old=False).frames


def test_a_load_over_many_partitions_asks_each_of_them_once_a_turn():
    made = produced("--partitions", "64")
    assert sorted(struct.unpack_from(">i", frame, len(frame) - BATCH_AT)[0] for frame in made) == list(range(64))


def test_batches_of_a_mixed_load_vary_and_those_of_another_do_not():
    assert len(set(produced("--mixed", "--records", "10"))) == load.MIXED_BATCHES
    assert len(produced("--records", "10")) == 1


def test_the_other_generator_is_not_asked_for_what_it_cannot_do():
    driven = [one.name for one in SCENARIOS if second_opinion.drives(one.arguments)]
    assert {"raw", "small-64", "consume-1mb"} <= set(driven)
    assert not {"raw-mixed", "lz4-100", "spread-64", "lookup-max"} & set(driven)


def test_topic_settings_are_pairs():
    _, options = load.parse(["raw", "--address", "a:1", "--set", "flush.messages=1", "--set", "a=b=c"])
    assert options.settings == (("flush.messages", "1"), ("a", "b=c"))


def test_percentiles_are_of_the_sorted_values_in_milliseconds():
    values = [number / 1000 for number in range(1000, 0, -1)]
    assert load.percentile(values, 0.5) == 500
    assert load.percentile(values, 0.999) == 999
    assert load.percentile(values, 1.0) == 1000
    assert load.percentile([], 0.5) is None


@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_run_measures_a_part_of_the_full_one(quick):
    chosen = compare.parse(["--quick"] if quick else [])
    scenarios = compare.choose(chosen)
    assert all(one.quick for one in scenarios) == quick
    assert compare.plan_of(chosen).rounds == (1 if quick else 5)
    assert any(target.metric == "p999_ms" for one in scenarios for target in one.targets)


@pytest.mark.parametrize("mode", second_opinion.NAMES)
def test_the_other_generator_is_asked_for_the_same_load(mode):
    options = load.Options("127.0.0.1:9", connections=16, in_flight=4, records=100, acks=-1)
    said = second_opinion.arguments(mode, options, "topic", 2.5)
    assert said[said.index("-addr") + 1] == "127.0.0.1:9"
    assert said[said.index("-secs") + 1] == "2.5"
    assert ("-conns" in said) == (mode not in ("paced", "endtoend"))


def test_the_other_generator_s_refusals_are_no_result():
    with pytest.raises(second_opinion.BrokerError):
        second_opinion.result("smallreq", {"reqs": 5, "bad": 1, "req_s": 5.0}, 1.0, None)
    found = second_opinion.result("smallreq", {"reqs": 500_000, "bad": 0, "req_s": 5.0, "ack_p50_ms": 1.5}, 1.0, 2.0)
    assert (found["rate"], found["p50_ms"], found["cpu_s_per_million"]) == (5.0, 1.5, 4.0)
