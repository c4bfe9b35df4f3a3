"""The registry of topics against a model: what was acknowledged is there after any crash, what was refused is not."""

import contextlib

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import JOURNAL
from tests.support.at_once import at_once, delete_topic
from tests.unit.broker.cluster.cluster_stand_ins import Machine

NAMES = st.sampled_from(["a", "b", "c.d", "c_d"])
COUNTS = st.integers(1, 4)
OVERRIDES = st.dictionaries(
    st.sampled_from(["retention.ms", "segment.ms"]), st.sampled_from(["5", "1000", "bad"]), max_size=2
)


class ClusterMachine(RuleBasedStateMachine):
    """Every rule may run with a disk that fails once, or twice; then the model changes only if the call said so."""

    def __init__(self):
        super().__init__()
        self.machine = Machine()
        self.cluster = self.machine.start()
        self.model = {}
        self.producer_ids = []

    def seen(self):
        return {name: (t.partition_count, t.overrides) for name, t in self.cluster.topics.items()}

    @contextlib.contextmanager
    def disk(self, fails):
        if fails:
            self.machine.storage.fail("sync", JOURNAL, times=fails)
        yield
        self.machine.storage.heal()

    @rule(
        new=st.lists(st.tuples(NAMES, COUNTS, OVERRIDES), max_size=3, unique_by=lambda each: each[0]),
        fails=st.integers(0, 2),
    )
    def create(self, new, fails):
        with self.disk(fails):
            results = at_once(
                self.cluster.create_topics, [NewTopic(name, count, overrides=o) for name, count, o in new]
            )
        for (name, count, overrides), result in zip(new, results, strict=True):
            if not isinstance(result, ClusterError):
                assert name not in self.model
                self.model[name] = (count, overrides)

    @rule(name=NAMES, fails=st.integers(0, 2))
    def delete(self, name, fails):
        with self.disk(fails):
            try:
                delete_topic(self.cluster, name)
            except ClusterError:
                assert fails or name not in self.model
            else:
                del self.model[name]

    @rule(name=NAMES, count=COUNTS, fails=st.integers(0, 2))
    def grow(self, name, count, fails):
        with self.disk(fails):
            failed = at_once(self.cluster.add_partitions, [NewPartitions(name, count)])
        if not failed:
            assert count > self.model[name][0]
            self.model[name] = (count, self.model[name][1])

    @rule(name=NAMES, overrides=OVERRIDES, fails=st.integers(0, 2))
    def alter(self, name, overrides, fails):
        if name in self.model:
            with self.disk(fails):
                try:
                    at_once(self.cluster.alter_topic_configs, {name: overrides})
                except ClusterError:
                    assert fails or "bad" in overrides.values()
                else:
                    self.model[name] = (self.model[name][0], overrides)

    @rule(count=st.integers(1, 1500))
    def take_producer_ids(self, count):
        for _ in range(count):
            self.producer_ids.append(self.cluster.producer_ids.take())
        assert all(a < b for a, b in zip(self.producer_ids, self.producer_ids[1:], strict=False))

    @rule(lost=st.booleans(), pick=st.randoms(use_true_random=False))
    def crash(self, lost, pick):
        """After the file was written, some folders may not have been made: a crash came between."""
        if lost and self.machine.folders:
            name, index = pick.choice(sorted(self.machine.folders))
            del self.machine.folders[name, index]
        self.cluster = self.machine.start()

    @invariant()
    def the_cluster_is_what_the_model_says(self):
        assert self.seen() == self.model
        folders = {(name, index) for name, (count, _) in self.model.items() for index in range(count)}
        assert set(self.machine.folders) == folders
        assert all(p.config is t.config for t in self.cluster.topics.values() for p in t.led_here)
        assert {t.id for t in self.cluster.topics.values()} == set(self.cluster.by_id)


ClusterMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestCluster = ClusterMachine.TestCase
