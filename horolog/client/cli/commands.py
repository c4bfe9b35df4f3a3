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
    Command("up", "horolog.client.cli.up", "start a broker and its console together, for a first look"),
    Command("serve", "horolog.client.cli.serve", "run the broker"),
    Command("test-broker", "horolog.testing.command", "run a broker in memory, for tests in any language"),
    Command("produce", "horolog.client.cli.produce", "produce records from lines or JSON"),
    Command("consume", "horolog.client.cli.consume", "read records: a range of times, or new ones as they arrive"),
    Command("at", "horolog.client.cli.at", "show the records around a time, merged from all partitions"),
    Command("offsets", "horolog.client.cli.offsets", "find offsets by time, with warnings about times out of order"),
    Command("topics", "horolog.client.cli.topics", "list, create, describe, alter, trim, copy and delete topics"),
    Command("configs", "horolog.client.cli.configs", "show and change settings of topics, brokers and groups"),
    Command("groups", "horolog.client.cli.groups", "show and reset groups: members, lag in records and time"),
    Command(
        "transactions", "horolog.client.cli.transactions", "list and describe transactions, and abort hanging ones"
    ),
    Command(
        "producers",
        "horolog.client.cli.producers",
        "show the producers of a topic's partitions, and their open transactions",
    ),
    Command("cluster", "horolog.client.cli.cluster", "show the brokers, what each leads, and the store they share"),
    Command("reassign", "horolog.client.cli.reassign", "move partitions to other brokers, and list or cancel moves"),
    Command("elect-leaders", "horolog.client.cli.elect_leaders", "elect the leaders of partitions"),
    Command("logdirs", "horolog.client.cli.logdirs", "show the data folders of all brokers, and their sizes"),
    Command("acls", "horolog.client.cli.acls", "show and change access rules, and explain decisions"),
    Command("quotas", "horolog.client.cli.quotas", "show and change quotas of users, client ids and addresses"),
    Command("users", "horolog.client.cli.users", "add, list and remove SASL/SCRAM users"),
    Command("bench", "horolog.client.cli.bench", "measure a broker: produce, consume, latency, lookups"),
    Command("health", "horolog.client.cli.health", "check a broker; the result is the exit code"),
    Command("profiles", "horolog.client.cli.profiles", "list and edit the profiles for --profile"),
    Command("retention", "horolog.client.cli.retention", "show what retention deletes next, when, and by which rule"),
    Command("timeline", "horolog.client.cli.timeline", "draw the number of records over time"),
    Command(
        "console",
        "horolog.console.command",
        "show clusters, topics and groups in a browser",
    ),
    Command("dump", "horolog.client.cli.dump", "show the content of files in a data folder, and damage"),
    Command("doctor", "horolog.client.cli.doctor", "check a data folder, and repair it with --repair"),
    Command("adopt", "horolog.client.cli.adopt", "take over a Kafka data folder; preview what retention would delete"),
    Command("backup", "horolog.client.cli.backup", "copy data folders to an object store, and list and verify copies"),
    Command("restore", "horolog.client.cli.restore", "restore data folders from a backup, as of a moment"),
    Command("store", "horolog.client.cli.store", "test, inspect, import, export or restore the store of a cluster"),
    Command("pipeline", "horolog.pipeline.jobs.command", "archive, replay, mirror and profile topics with Spark"),
    Command(
        "files",
        "horolog.client.cli.files",
        "show or copy the files that come with horolog: settings, systemd unit, Prometheus, Grafana",
    ),
    Command("completion", "horolog.client.cli.completion", "print the completion script for a shell"),
    Command("version", "horolog.client.cli.version", "print the versions of horolog, Python and libraries"),
)

BY_NAME = {command.name: command for command in COMMANDS}
