"""A broker without others is a cluster with one member: no code asks whether there are others, but for what `is_shared` says."""

import re
from pathlib import Path

import pytest

import horolog

ROOT = Path(horolog.__file__).parent
FORMS = {
    "no others": r"\bothers is (not )?None\b",
    "no membership": r"\bmembership is (not )?None\b",
    "no hand-overs": r"\bhand_?overs is (not )?None\b",
    "no share": r"\bshare is (not )?None\b",
    "no worker": r"\b(worker|worker_context) is (not )?None\b",
    "no peers": r"\b_?peers is (not )?None\b",
    "the number of nodes": r"\blen\([\w.]*nodes\)\s*[<>=!]=?\s*\d|\bnodes\[1:\]",
    "whether there is a node": r"\b(if|not|and|or|bool\()\s*[\w.]*\.(_?others|nodes)\b(?=\s*(:|\)|and\b|or\b|else\b|$))",
    "the kind of membership": r"\bisinstance\([^)]*\b(SoleMember|WorkerMembership)\b|\bclass \w+\((SoleMember|WorkerMembership)\b",
    "a role": r"\b(Role|WorkerRole|role)\b",
}
"""Ways to ask "am I the only broker?"."""

OTHER_MEANINGS = {
    ("whether there is a node", "bucket/bucket_state.py"),  # before the first broker has registered there is none
    ("whether there is a node", "cluster/cluster.py"),  # members that the journal names are not set by the process
    ("a role", "groups/streams/streams_decisions.py"),  # that of a task: active, standby or warm-up
    ("a role", "groups/streams/streams_group.py"),
    ("a role", "groups/streams/streams_reconcile.py"),
    ("a role", "groups/streams/task_holders.py"),
    ("a role", "groups/streams/tasks.py"),
}

ASK_WHETHER_SHARED = {
    "bucket/bucket_membership.py",
    "cluster/change_driver.py",
    "cluster/changes.py",
    "cluster/cluster.py",
    "cluster/membership.py",
    "cluster/worker_membership.py",
    "transactions/coordinator.py",
    "transactions/journal.py",
    "transactions/marking.py",
}


def sources():
    for path in sorted((ROOT / "broker").rglob("*.py")):
        yield path.relative_to(ROOT / "broker"), path.read_text("utf-8")


def test_forms_find_what_they_are_meant_for():
    for text in (
        "if others is None:",
        "if not self._others.nodes:",
        "if len(self.cluster.nodes) > 1:",
        "x = role or y",
    ):
        assert any(re.search(form, text) for form in FORMS.values()), text
    for text in ("for node in nodes:", "if node in self.nodes:", "return nodes or ()", "not others.live"):
        assert not re.search(FORMS["whether there is a node"], text), text


@pytest.mark.parametrize("form", FORMS)
def test_nobody_asks_whether_there_are_others(form):
    pattern = re.compile(FORMS[form], re.MULTILINE)
    found = [(str(path), match.group()) for path, text in sources() for match in pattern.finditer(text)]
    assert [one for one in found if (form, one[0]) not in OTHER_MEANINGS] == []


def test_what_differs_between_kinds_of_cluster_has_one_name():
    """Add a module only if it does something that others would have to know of, or could have done."""
    assert {str(path) for path, text in sources() if re.search(r"\bis_shared\b", text)} == ASK_WHETHER_SHARED
