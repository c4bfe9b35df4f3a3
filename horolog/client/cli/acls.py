"""`horolog acls`: lists, adds and removes access rules, and checks which of them allows or denies an operation."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_data_folders
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.access_words import (
    RESOURCES,
    acl_of_words,
    operation_of,
    principal_of,
    resource_of,
    resource_text,
)
from horolog.commands.online.actions import Action, add_actions, run_action
from horolog.commands.online.connecting import admin_of

if TYPE_CHECKING:
    from horolog.base.acls import Acl, AclFilter
    from horolog.broker.security.authorizer import Authorizer, Verdict
    from horolog.client.admin.admin import Admin


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(
        parser, "Show and change access rules, and explain why a principal may or may not do something.", ACTIONS
    )


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- the words of a command


def _add_rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("principal", metavar="PRINCIPAL", help="a user, or TYPE:NAME; '*' means all users")
    parser.add_argument("operation", metavar="OPERATION", help="read, write, describe, ... or all")
    parser.add_argument("resource", metavar="RESOURCE", help=RESOURCES)
    parser.add_argument("--host", default="*", metavar="ADDRESS", help="the address of the client (default: any)")


def _add_denied_rule(parser: argparse.ArgumentParser) -> None:
    _add_rule(parser)
    parser.add_argument("--deny", action="store_true", help="deny access; such a rule overrides rules that allow")
    add_data_folders(parser)


def _rule(arguments: argparse.Namespace) -> "Acl":
    words = (arguments.principal, arguments.operation, arguments.resource, arguments.host)
    return acl_of_words(*words, deny=arguments.deny)


# -- list, add, remove


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("principal", metavar="PRINCIPAL", nargs="?", help="only rules that apply to this principal")
    parser.add_argument("--resource", metavar="RESOURCE", help=f"only rules that apply to this resource: {RESOURCES}")
    add_data_folders(parser)


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.base.acl_types import EVERYBODY

    wanted = _filter(arguments.resource)
    if arguments.data:
        found = [acl for acl in _in_folder(arguments.data) if wanted.chooses(acl)]
    else:
        async with admin_of(arguments) as admin:
            found = await admin.describe_acls(wanted)
    if arguments.principal is not None:
        who = (principal_of(arguments.principal), EVERYBODY)
        found = [acl for acl in found if acl.principal in who]
    return _shown(console, found)


def _filter(resource: str | None) -> "AclFilter":
    from horolog.base.acl_types import EVERY_NAME, PatternType
    from horolog.base.acls import AclFilter

    if resource is None:
        return AclFilter()
    kind, name, is_prefix = resource_of(resource)
    if is_prefix:
        return AclFilter(kind, name, PatternType.PREFIXED)
    return AclFilter(kind, name, PatternType.LITERAL if name == EVERY_NAME else PatternType.MATCH)


def _shown(console: Console, acls: "list[Acl]", **more: str) -> ExitCode:
    if console.as_json:
        console.json([{**_as_json(acl), **more} for acl in acls])
        return ExitCode.OK
    console.table(
        ("PRINCIPAL", "HOST", "", "OPERATION", "RESOURCE"),
        [
            (acl.principal, acl.host, acl.permission.name.lower(), acl.operation.name.lower(), resource_text(acl))
            for acl in acls
        ],
    )
    return ExitCode.OK


def _as_json(acl: "Acl") -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
        "resource_type": acl.resource_type.name,
        "name": acl.name,
        "pattern": acl.pattern_type.name,
    }


async def _add(arguments: argparse.Namespace, console: Console) -> ExitCode:

    rule = _rule(arguments)
    if arguments.data:
        from horolog.broker.cluster.cluster_state import RulesChanged
        from horolog.broker.security.acls import rule_of
        from horolog.client.cli.examining import folder_rules

        folder_rules.change(arguments.data, lambda _: RulesChanged(put=(rule_of(rule),)))
    else:
        async with admin_of(arguments) as admin:
            await admin.create_acls([rule])
    return _shown(console, [rule], done="added")


async def _remove(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.base.acls import AclFilter
    from horolog.broker.security.acls import rule_of

    rule = _rule(arguments)
    if arguments.data:
        from horolog.broker.cluster.cluster_state import RulesChanged
        from horolog.client.cli.examining import folder_rules

        gone = [one for one in _in_folder(arguments.data) if one == rule]
        if gone:
            folder_rules.change(arguments.data, lambda _: RulesChanged(removed=frozenset({rule_of(rule).id})))
    else:
        async with admin_of(arguments) as admin:
            gone = await admin.delete_acls([AclFilter(*rule)])
    if not gone:
        raise NotFoundError(f"there is no such rule: {rule}", "`horolog acls list` shows them all")
    return _shown(console, gone, done="removed")


def _in_folder(data_dirs: list[str]) -> "list[Acl]":
    from horolog.broker.on_record.stored_rules import ACL
    from horolog.broker.security.acls import acl_of
    from horolog.client.cli.examining import folder_rules

    return sorted(acl_of(rule.content) for rule in folder_rules.read(data_dirs).values() if rule.kind == ACL)


# -- check


async def _check(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Check against the broker's rules and settings; the decision is made here, by the broker's own code."""
    from horolog.broker.base.principal import Principal

    kind, name, is_prefix = resource_of(arguments.resource)
    if is_prefix:
        raise UsageError(f"{arguments.resource!r} is not a single resource", "give the full name of one resource")
    operation = operation_of(arguments.operation)
    who, _, user = principal_of(arguments.principal).partition(":")
    async with admin_of(arguments) as admin:
        authorizer = await _authorizer(admin)
    host = "" if arguments.host == "*" else arguments.host
    verdict = authorizer.verdict(Principal(who, user), host, operation, kind, name)
    _told(console, verdict)
    return ExitCode.OK if verdict.allowed else ExitCode.FAILED


async def _authorizer(admin: "Admin") -> "Authorizer":
    from horolog.broker.config.protection import super_users_of
    from horolog.broker.security.authorizer import Authorizer

    number = str(min((await admin.client.metadata([])).nodes))
    keys = ("super.users", "allow.everyone.if.no.acl.found")
    settings = await admin.describe_configs("broker", number, keys)
    values = {key: (settings[key].value or "") if key in settings else "" for key in keys}
    return Authorizer(
        super_users_of(values["super.users"]),
        allow_without_rules=values["allow.everyone.if.no.acl.found"] == "true",
        acls=await admin.describe_acls(),
    )


def _told(console: Console, verdict: "Verdict") -> None:
    if console.as_json:
        rule = None if verdict.rule is None else _as_json(verdict.rule)
        console.json([{"allowed": verdict.allowed, "reason": verdict.reason or str(verdict), "rule": rule}])
    else:
        word = "allowed" if verdict.allowed else "denied"
        console.print(f"{word}: {verdict}")


ACTIONS = (
    Action(
        "list",
        "show the rules",
        _list_arguments,
        _list,
        ("horolog acls list", "horolog acls list alice --resource topic:orders-eu"),
    ),
    Action(
        "add",
        "add a rule that allows or denies access",
        _add_denied_rule,
        _add,
        (
            "horolog acls add alice read topic:orders-*",
            "horolog acls add '*' all topic:secret --deny",
            "horolog acls add admin all cluster --data /var/lib/horolog",
            "horolog acls add alice read group:billing --host 192.0.2.7",
        ),
    ),
    Action(
        "remove",
        "remove a rule",
        _add_denied_rule,
        _remove,
        ("horolog acls remove alice read topic:orders-*",),
    ),
    Action(
        "check",
        "check whether a principal has access, and by which rule",
        _add_rule,
        _check,
        ("horolog acls check alice read topic:orders-eu", "horolog acls check alice alter cluster --host 192.0.2.7"),
    ),
)
