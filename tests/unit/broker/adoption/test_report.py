"""The lines that a start prints about what it takes over."""

from horolog.broker.adoption.report import MAX_NAMED, named, summary
from horolog.broker.adoption.takeover import Origin, Takeover
from tests.support.log_model import NOW_MS, Model, send, small_config


def lines(taken, partitions=()):
    return list(summary(taken, partitions, NOW_MS))


def test_a_start_that_takes_nothing_over_only_tells_its_notes():
    assert lines(Takeover(origins={"t": Origin.RECORD}, notes=["something"])) == ["something"]


def test_topics_are_counted_by_where_their_settings_come_from():
    origins = {"a": Origin.KRAFT, "b": Origin.KRAFT, "c": Origin.UNKNOWN, "on record": Origin.RECORD}
    (line,) = lines(Takeover(origins=origins))
    assert line.startswith("taken over: 3 topics")
    assert f"2 {Origin.KRAFT.value}" in line
    assert f"1 {Origin.UNKNOWN.value}" in line


def test_settings_that_a_kafka_has_changed_are_told():
    (line,) = lines(Takeover(origins={"a": Origin.CHANGED}))
    assert "settings of a " in line


def test_what_retention_would_delete_soon_is_told_of_the_topics_that_are_new_here():
    model = Model(small_config(retention_ms=1000))
    send(model, 0)
    size_bytes = model.partition.size_bytes
    (_, line) = lines(Takeover(origins={"t": Origin.KRAFT}), [model.partition])
    assert f"1 segment, {size_bytes:,} bytes, of t within an hour" in line
    assert len(lines(Takeover(origins={"t": Origin.RECORD, "u": Origin.KRAFT}), [model.partition])) == 1


def test_long_lists_are_cut():
    names = [f"t{number}" for number in range(MAX_NAMED + 2)]
    assert named(names[:2]) == "t0, t1"
    assert named(names).endswith(f"t{MAX_NAMED - 1} and 2 more")
