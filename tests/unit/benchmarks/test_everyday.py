"""Everyday tasks: a command's CPU with all that it starts, and the table of keystrokes and CPU."""

import os
from pathlib import Path

from benchmarks.everyday import SCRIPTS, TASKS, Task, keystrokes, lay_out, run, table


def test_a_command_runs_at_its_broker_and_its_cpu_counts_its_children(tmp_path):
    used, code, said = run("echo at localhost:9092 by $HOROLOG_BOOTSTRAP; exit 3", "b:1", tmp_path)
    assert (code, said) == (3, "at b:1 by b:1\n")
    busy, code, _ = run("bash -c 'for _ in $(seq 200000); do :; done'", "b:1", tmp_path)
    assert code == 0
    assert busy > used


def test_commands_have_their_names(tmp_path):
    lay_out(tmp_path, None)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["horolog", "records.json"]
    lay_out(tmp_path, Path("/jars"))
    assert SCRIPTS.keys() <= {one.name for one in tmp_path.iterdir()}
    assert all(os.access(tmp_path / name, os.X_OK) for name in ("horolog", *SCRIPTS))
    assert "-cp '/jars/*' org.apache.kafka.tools.TopicCommand" in (tmp_path / "kafka-topics.sh").read_text()


def test_there_are_ten_tasks_and_horolog_has_all_of_them():
    assert len({task.name for task in TASKS}) == len(TASKS) == 10
    assert all(task.horolog for task in TASKS)
    named = {word for task in TASKS for word in (task.kafka or "").split() if word.endswith(".sh")}
    assert named == set(SCRIPTS)


def test_a_row_has_keystrokes_and_seconds():
    tasks = [Task("list", "horolog topics list", None, "kafka-topics.sh --list")]
    shown = table({"horolog": {"list": 0.0801}, "kcat": {}, "kafka": {}}, tasks).splitlines()
    assert shown[0] == "| task | horolog: keys, CPU | kcat: keys, CPU | kafka: keys, CPU |"
    assert shown[2] == "| list | 19, 0.080 s | - | 22, not run |"
    assert keystrokes("horolog topics list") == 19
