"""The sticky assignor: even, sticky, and copies apart from their tasks."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.groups.streams.configured_topology import ConfiguredSubtopology
from horolog.broker.groups.streams.sticky_assignor import Assigning, TaskQuota, TaskRunner, assign_sticky
from horolog.broker.groups.streams.tasks import NO_TASKS, TaskSet, each_task


def plan(**counts):
    """Subtopologies by name; those that begin with s have state."""
    return {name: ConfiguredSubtopology(count, {}, name.startswith("s")) for name, count in counts.items()}


def runners(*names, before=None):
    """Members, named process-number."""
    return {name: TaskRunner(name.partition("-")[0], (before or {}).get(name, NO_TASKS)) for name in names}


def counts(given, role="active"):
    return sorted(sum(len(one) for one in getattr(tasks, role).values()) for tasks in given.values())


def check(given, members, subtopologies, standbys):
    """Every task is active once, and its copies are on other processes, one for each as far as these suffice."""
    active = Counter(task for tasks in given.values() for task in each_task(tasks.active))
    assert active == Counter((name, index) for name, one in subtopologies.items() for index in range(one.task_count))
    processes = {one.process_id for one in members.values()}
    wanted = min(standbys, len(processes) - 1)
    holders = Counter(
        (task, members[member].process_id)
        for member, tasks in given.items()
        for task in (*each_task(tasks.active), *each_task(tasks.standby))
    )
    assert not holders or max(holders.values()) == 1
    copies = Counter(task for tasks in given.values() for task in each_task(tasks.standby))
    assert copies == {task: wanted for task in active if wanted and task[0].startswith("s")}


def test_tasks_are_shared_evenly():
    given = assign_sticky(runners("a-1", "b-1", "c-1"), plan(s=4, t=3), 0)
    assert counts(given) == [2, 2, 3]
    assert assign_sticky({}, plan(s=1), 1) == {}


def test_a_process_with_two_members_gets_two_shares():
    given = assign_sticky(runners("a-1", "a-2", "b-1"), plan(s=6), 0)
    assert counts(given) == [2, 2, 2]


def test_members_keep_their_tasks():
    first = assign_sticky(runners("a-1", "b-1"), plan(s=4), 0)
    again = assign_sticky(runners("a-1", "b-1", before=first), plan(s=4), 0)
    assert again == first
    with_new = assign_sticky(runners("a-1", "b-1", "c-1", before=first), plan(s=4), 0)
    assert counts(with_new) == [1, 1, 2]
    kept = sum(len(set(each_task(with_new[one].active)) & set(each_task(first[one].active))) for one in first)
    assert kept == 3


def test_a_copy_becomes_the_active_task():
    before = {"b-1": TaskSet({}, {"s": frozenset({0, 1})}), "c-1": TaskSet({}, {}, {"s": frozenset({2})})}
    given = assign_sticky(runners("a-1", "b-1", "c-1", before=before), plan(s=3), 0)
    assert given["b-1"].active["s"] <= {0, 1}
    assert given["c-1"].active == {"s": frozenset({2})}


def test_copies_stay_where_they_are():
    first = assign_sticky(runners("a-1", "b-1", "c-1"), plan(s=6), 1)
    assert assign_sticky(runners("a-1", "b-1", "c-1", before=first), plan(s=6), 1) == first


def test_copies_need_other_processes():
    given = assign_sticky(runners("a-1", "a-2"), plan(s=2), 1)
    assert counts(given, "standby") == [0, 0]


def test_names():
    assert "2 tasks" in repr(TaskQuota(2, 1))
    assert TaskQuota(2, 0).limit == 0
    assert "TaskQuota" in repr(Assigning(runners("a-1"), 1, 1))


MEMBERS = st.lists(
    st.sampled_from([f"{process}-{number}" for process in "abc" for number in "12"]), min_size=1, unique=True
)
COUNTS = st.dictionaries(st.sampled_from(["s0", "s1", "t0"]), st.integers(1, 6), min_size=1)


@given(st.lists(MEMBERS, min_size=1, max_size=4), COUNTS, st.integers(0, 2))
def test_any_history_of_members(history, counts_of, standbys):
    subtopologies, before = plan(**counts_of), {}
    for names in history:
        members = runners(*names, before=before)
        before = assign_sticky(members, subtopologies, standbys)
        check(before, members, subtopologies, standbys)
        total = sum(counts_of.values())
        assert max(counts(before)) <= total, "no member has more than there is"
        assert assign_sticky(members, subtopologies, standbys) == before, "the same input gives the same tasks"
