"""The table of commands: the source of the help, the shell completions and the lookup of a command's module.

To add a command, add a line; `module` must have

    def configure(parser: argparse.ArgumentParser) -> None      # arguments; `arguments.describe` for description and examples
    def run(arguments: argparse.Namespace, console: Console) -> ExitCode      # or `async def run`, if it talks to a broker

The module is imported when its command is used, and when completions are made; it imports expensive modules
inside `run`.
"""

from typing import NamedTuple


class Command(NamedTuple):
    name: str
    module: str
    sentence: str


COMMANDS = (
    Command("serve", "horolog.client.cli.serve", "run the broker"),
    Command("test-broker", "horolog.testing.command", "run a broker for a test of any language, in memory"),
    Command("produce", "horolog.client.cli.produce", "send lines or JSON as records"),
    Command("consume", "horolog.client.cli.consume", "read records, from one time to another or as they come"),
    Command("at", "horolog.client.cli.at", "show what happened at a time: the records of all partitions, merged"),
    Command(
        "offsets", "horolog.client.cli.offsets", "show which offset a time is, and whether times are in order there"
    ),
    Command("topics", "horolog.client.cli.topics", "list, create, describe, alter, trim and delete topics"),
    Command("configs", "horolog.client.cli.configs", "show and change settings of topics, brokers and groups"),
    Command("groups", "horolog.client.cli.groups", "consumer groups: lag in records and time, reset by time, members"),
    Command("acls", "horolog.client.cli.acls", "access lists: who may do what, and by which rule"),
    Command("users", "horolog.client.cli.users", "users of SASL/SCRAM: add, list, remove, before the first start, too"),
    Command("bench", "horolog.client.cli.bench", "measure a broker: produce, consume, latency, look-ups"),
    Command("health", "horolog.client.cli.health", "ask a broker whether it serves; the answer is the exit code"),
    Command("profiles", "horolog.client.cli.profiles", "list the brokers that --profile knows by name"),
    Command("retention", "horolog.client.cli.retention", "show what of a topic is deleted next, when, by which rule"),
    Command(
        "timeline", "horolog.client.cli.timeline", "draw how many records there are at which time, without reading them"
    ),
    Command(
        "console",
        "horolog.console.command",
        "serve pages in a browser that show clusters, topics and groups over time",
    ),
    Command("dump", "horolog.client.cli.dump", "show the content of files of a data folder, and their faults"),
    Command(
        "doctor", "horolog.client.cli.doctor", "check a data folder that no broker runs on, and repair it if asked to"
    ),
    Command(
        "adopt", "horolog.client.cli.adopt", "take a folder of Kafka over, see first what retention would do to it"
    ),
    Command("store", "horolog.client.cli.store", "test whether an object store keeps what brokers would rest on"),
    Command("pipeline", "horolog.pipeline.jobs.command", "archive, replay, mirror and profile topics, on Spark"),
    Command(
        "files",
        "horolog.client.cli.files",
        "show or copy the files that come along: settings, systemd unit, Prometheus, Grafana",
    ),
    Command("completion", "horolog.client.cli.completion", "print the completion script of a shell"),
    Command("version", "horolog.client.cli.version", "print the versions of horolog, Python and the libraries used"),
)

BY_NAME = {command.name: command for command in COMMANDS}
