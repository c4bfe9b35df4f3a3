"""`kafka-topics`: list, create, describe, alter and delete topics."""

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from horolog.client.cli.kafka_scripts.options import add_actions, add_bootstrap, add_unused, assignments
from horolog.commands.arguments import positive_number
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.wire.cluster_view import PartitionView, TopicView

TOPIC_SOURCE = 1


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "list", "create", "describe", "alter", "delete")
    add_bootstrap(parser)
    parser.add_argument("--topic", metavar="TOPIC", help="a name; for --list, --describe and --delete also a pattern")
    parser.add_argument("--partitions", type=positive_number, metavar="N")
    parser.add_argument("--replication-factor", type=positive_number, metavar="N")
    parser.add_argument("--config", action="append", metavar="KEY=VALUE")
    parser.add_argument("--if-not-exists", action="store_true", help="do nothing if the topic exists")
    parser.add_argument("--if-exists", action="store_true", help="do nothing if the topic does not exist")
    parser.add_argument("--exclude-internal", action="store_true", help="leave out internal topics")
    parser.add_argument("--topics-with-overrides", action="store_true")
    parser.add_argument("--unavailable-partitions", action="store_true")
    parser.add_argument("--under-replicated-partitions", action="store_true")
    add_unused(parser, "--force", "--disable-rack-aware", takes_value=False)
    add_unused(parser, "--partition-size-limit-per-response")


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:

    if arguments.action in {"create", "alter", "delete"} and not arguments.topic:
        raise UsageError(f"--{arguments.action} needs --topic")
    async with admin_of(arguments) as admin:
        return await ACTIONS[arguments.action](admin, arguments, console)


async def _chosen(admin: "Admin", arguments: argparse.Namespace) -> "list[TopicView]":
    """The topics that `--topic` names or, as a pattern, matches. Raises NotFoundError if it names none."""
    known = (await admin.client.metadata()).topics
    pattern = re.compile(arguments.topic or ".*")
    chosen = [
        topic
        for name, topic in sorted(known.items())
        if (name == arguments.topic or pattern.fullmatch(name)) and not (arguments.exclude_internal and topic.internal)
    ]
    if arguments.topic and not chosen and not arguments.if_exists:
        raise NotFoundError(f"Topic '{arguments.topic}' does not exist as expected")
    return chosen


async def _list(admin: "Admin", arguments: argparse.Namespace, console: Console) -> ExitCode:
    arguments.if_exists = True  # a pattern that matches nothing is an empty list
    for topic in await _chosen(admin, arguments):
        console.print(topic.name)
    return ExitCode.OK


async def _create(admin: "Admin", arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.values.errors import KafkaError
    from horolog.protocol.errors import ErrorCode

    try:
        await admin.create_topic(
            arguments.topic,
            arguments.partitions or -1,
            replication=arguments.replication_factor or -1,
            configs=assignments(arguments.config),
        )
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and arguments.if_not_exists:
            return ExitCode.OK
        raise
    console.print(f"Created topic {arguments.topic}.")
    return ExitCode.OK


async def _alter(admin: "Admin", arguments: argparse.Namespace, _console: Console) -> ExitCode:
    if arguments.partitions is None:
        raise UsageError("--alter needs --partitions", "kafka-configs alters settings")
    for topic in await _chosen(admin, arguments):
        await admin.create_partitions({topic.name: arguments.partitions})
    return ExitCode.OK


async def _delete(admin: "Admin", arguments: argparse.Namespace, _console: Console) -> ExitCode:
    chosen = await _chosen(admin, arguments)
    if chosen:
        await admin.delete_topics([topic.name for topic in chosen])
    return ExitCode.OK


async def _describe(admin: "Admin", arguments: argparse.Namespace, console: Console) -> ExitCode:
    leaders = (await admin.client.metadata()).nodes
    for topic in await _chosen(admin, arguments):
        configs = await overrides_of(admin, topic.name)
        if arguments.topics_with_overrides and not configs:
            continue
        partitions = [one for _, one in sorted(topic.partitions.items()) if _is_wanted(one, arguments, leaders)]
        if not (arguments.unavailable_partitions or arguments.under_replicated_partitions):
            console.print(_head(topic, configs))
        if arguments.topics_with_overrides:
            continue
        for one in partitions:
            console.print(
                f"\tTopic: {topic.name}\tPartition: {one.index}\tLeader: {one.leader if one.leader in leaders else 'none'}"
                f"\tReplicas: {_joined(one.replicas)}\tIsr: {_joined(one.in_sync)}"
            )
    return ExitCode.OK


async def overrides_of(admin: "Admin", topic: str) -> dict[str, str | None]:
    """The topic's own settings."""
    configs = await admin.describe_configs("topic", topic)
    return {key: config.value for key, config in configs.items() if config.source == TOPIC_SOURCE}


def _is_wanted(one: "PartitionView", arguments: argparse.Namespace, leaders: Mapping[int, object]) -> bool:
    if arguments.unavailable_partitions:
        return one.leader not in leaders
    if arguments.under_replicated_partitions:
        return len(one.in_sync) < len(one.replicas)
    return True


def _head(topic: "TopicView", configs: Mapping[str, str | None]) -> str:
    from horolog.protocol.uuids import show_uuid

    topic_id = show_uuid(topic.id) if any(topic.id) else "-"
    copies = max((len(one.replicas) for one in topic.partitions.values()), default=0)
    settings = ",".join(f"{key}={value}" for key, value in configs.items())
    return (
        f"Topic: {topic.name}\tTopicId: {topic_id}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {copies}\tConfigs: {settings}"
    )


def _joined(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


ACTIONS = {"list": _list, "create": _create, "describe": _describe, "alter": _alter, "delete": _delete}
