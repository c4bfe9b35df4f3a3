"""Ten everyday tasks with horolog, kcat and Kafka's own tools against one broker: keystrokes, and CPU seconds of the commands.

    python -m benchmarks.everyday [--runs 5]

Keystrokes are the characters of the command line, for a broker at localhost:9092, which is horolog's default. CPU is the user
and system time of all processes of a command; the least of the runs counts. Kafka's tools run with the options of their scripts,
without the shell code that looks for Java. A task that takes two commands has both on its line.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import kafka
from horolog.testing import broker_in_thread

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "4.3.1"
ADDRESS = "localhost:9092"
LONGEST_SECONDS = "60"
"""A command that takes longer is ended, which fails."""
TOOLS = "org.apache.kafka.tools"
SCRIPTS = {
    "kafka-topics.sh": f"{TOOLS}.TopicCommand",
    "kafka-get-offsets.sh": f"{TOOLS}.GetOffsetShell",
    "kafka-console-consumer.sh": f"{TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": f"{TOOLS}.ConsoleProducer",
    "kafka-consumer-groups.sh": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
}
JAVA = "exec java -Xmx256M -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -cp"
RECORDS = """{"key": "ann", "value": "opens the shop", "timestamp": "2026-11-17T10:00Z"}
{"key": "bob", "value": "looks at a clock", "timestamp": "2026-11-17T10:04:10Z"}
{"key": "bob", "value": "buys the clock", "timestamp": "2026-11-17T10:05:20Z"}
{"key": "cyd", "value": "asks for the time", "timestamp": "2026-11-17T10:05:40Z"}
{"key": "ann", "value": "closes the shop", "timestamp": "2026-11-17T18:00Z"}
"""


class Task(NamedTuple):
    """One task in the words of each program; None where it cannot do that."""

    name: str
    horolog: str
    kcat: str | None
    kafka: str | None


B = f"--bootstrap-server {ADDRESS}"
K = f"kcat -b {ADDRESS}"
TASKS = (
    Task("list topics", "horolog topics list", f"{K} -L", f"kafka-topics.sh {B} --list"),
    Task(
        "create a topic with a setting",
        "horolog topics create new -c retention.ms=-1",
        None,
        f"kafka-topics.sh {B} --create --topic new --config retention.ms=-1",
    ),
    Task(
        "write a record",
        "echo one | horolog produce new",
        f"echo one | {K} -P -t new",
        f"echo one | kafka-console-producer.sh {B} --topic new",
    ),
    Task("write a record of another time", "echo one | horolog produce new --timestamp 'yesterday 10:05'", None, None),
    Task(
        "read the first record",
        "horolog consume shop -n 1",
        f"{K} -C -t shop -o beginning -c 1",
        f"kafka-console-consumer.sh {B} --topic shop --from-beginning --max-messages 1",
    ),
    Task(
        "read the records of one minute",
        "horolog at shop '17 Nov 2026 10:05'",
        f"{K} -C -t shop -o s@1794909900000 -o e@1794909960000 -e",
        f"kafka-get-offsets.sh {B} --topic shop --time 1794909900000; "
        f"kafka-console-consumer.sh {B} --topic shop --partition 0 --offset 2 --max-messages 2",
    ),
    Task(
        "find the offset of a time",
        "horolog offsets shop '17 Nov 2026 10:05'",
        f"{K} -Q -t shop:0:1794909900000",
        f"kafka-get-offsets.sh {B} --topic shop --time 1794909900000",
    ),
    Task(
        "see how far behind a group is",
        "horolog groups lag billing",
        None,
        f"kafka-consumer-groups.sh {B} --describe --group billing",
    ),
    Task(
        "move a group to a time",
        "horolog groups reset billing --to '17 Nov 2026 10:04'",
        None,
        f"kafka-consumer-groups.sh {B} --group billing --topic shop --reset-offsets"
        " --to-datetime 2026-11-17T10:04:00.000 --execute",
    ),
    Task("delete a topic", "horolog topics delete new --yes", None, f"kafka-topics.sh {B} --delete --topic new"),
)


def keystrokes(command: str) -> int:
    return len(command)


def run(command: str, bootstrap: str, folder: Path) -> tuple[float, int, str]:
    """CPU seconds, exit code and output of a command and of all that it starts."""
    path = f"{folder}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOROLOG_BOOTSTRAP": bootstrap, "HOROLOG_TZ": "UTC"}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["timeout", LONGEST_SECONDS, "bash", "-c", command.replace(ADDRESS, bootstrap)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return used.ru_utime + used.ru_stime, process.returncode, output.read()


def lay_out(folder: Path, jars: Path | None) -> None:
    """The commands by their names: horolog of this environment, and Kafka's scripts if there are jars."""
    commands = {"horolog": f'PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m horolog "$@"'}
    if jars is not None:
        commands |= {name: f"{JAVA} '{jars}/*' {main} \"$@\"" for name, main in SCRIPTS.items()}
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "records.json").write_text(RECORDS)


def prepare(bootstrap: str, folder: Path, name: str) -> None:
    """The shop with its records and its group; for programs that create no topics, also the new topic."""
    words = [
        "horolog topics create shop --if-not-exists -c retention.ms=-1",
        "horolog produce shop records.json --format json",
        "horolog consume shop --group billing --max 3",
    ]
    if name == "kcat":
        words.append("horolog topics create new --if-not-exists")
    for command in words:
        _, code, said = run(command, bootstrap, folder)
        if code:
            raise SystemExit(f"{command}: {said}")


def measured(name: str, runs: int, folder: Path) -> dict[str, float]:
    """The least CPU of each task that a program has; each run has a broker of its own."""
    least: dict[str, float] = {}
    for _ in range(runs):
        with broker_in_thread() as broker:
            prepare(broker.bootstrap, folder, name)
            for task in TASKS:
                command = getattr(task, name)
                if command is None:
                    continue
                used, code, said = run(command, broker.bootstrap, folder)
                if code:
                    raise SystemExit(f"{command}: exit code {code}: {said}")
                least[task.name] = min(used, least.get(task.name, used))
    return least


def table(figures: Mapping[str, Mapping[str, float]], tasks: Sequence[Task] = TASKS) -> str:
    """A row for each task: keystrokes, then CPU seconds."""
    names = list(figures)
    lines = [f"| task | {' | '.join(f'{name}: keys, CPU' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for task in tasks:
        cells = [_cell(getattr(task, name), figures[name].get(task.name)) for name in names]
        lines.append(f"| {task.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(command: str | None, used: float | None) -> str:
    if command is None:
        return "-"
    return f"{keystrokes(command)}, {'not run' if used is None else f'{used:.3f} s'}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program; Kafka's tools have two at most")
    arguments = parser.parse_args(argv)
    try:
        jars: Path | None = kafka.libs(RELEASE)
    except kafka.MissingJarsError:
        jars = None
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lay_out(folder, jars)
        for name in ("horolog", "kcat", "kafka"):
            left_out = (name == "kcat" and not _is_there("kcat")) or (name == "kafka" and jars is None)
            figures[name] = (
                {} if left_out else measured(name, min(arguments.runs, 2 if name == "kafka" else 99), folder)
            )
    print(table(figures))


def _is_there(program: str) -> bool:
    return not kafka.missing_tools(program)


if __name__ == "__main__":
    main()
