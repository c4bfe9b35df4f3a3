"""`horolog quotas`: lists, sets and removes the rates that users, client ids and addresses may not exceed."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.access_words import BY_DEFAULT, QUOTA_KEYS, QUOTA_KINDS, known_quota, rate_of
from horolog.commands.online.actions import Action, add_actions, run_action
from horolog.commands.online.connecting import admin_of
from horolog.commands.online.setting_values import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from horolog.client.admin.admin_quotas import Quota


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "Show and change quotas: the rates that clients may not exceed.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- who a quota is for


def _add_entity(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="a user, as it logs in")
    parser.add_argument("--client-id", metavar="NAME", help="the client.id of clients")
    parser.add_argument("--ip", metavar="ADDRESS", help="the address that connections come from")
    parser.add_argument(
        "--default",
        choices=QUOTA_KINDS,
        action="append",
        default=[],
        help="the default for all of this kind without a quota of their own; repeatable",
    )


def parts_of(arguments: argparse.Namespace) -> dict[str, str | None]:
    """The kinds and names that the options give; None stands for the default. Raises UsageError."""
    parts: dict[str, str | None] = {}
    for kind in QUOTA_KINDS:
        name = getattr(arguments, kind.replace("-", "_"))
        if name is not None and kind in arguments.default:
            raise UsageError(f"--{kind} and --default {kind} are both given", "give only one of them")
        if name == "":
            raise UsageError(
                f"--{kind} is empty", f"give a name, or --default {kind} for all without a quota of their own"
            )
        if name is not None or kind in arguments.default:
            parts[kind] = name
    if "ip" in parts and len(parts) > 1:
        raise UsageError(
            "the quota of an address cannot be limited to a user or a client id", "leave out --user and --client-id"
        )
    return parts


def _required(arguments: argparse.Namespace) -> dict[str, str | None]:
    parts = parts_of(arguments)
    if not parts:
        raise UsageError("a quota is for a user, a client id or an address", "give --user, --client-id or --ip")
    return parts


# -- list, set, remove


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    parts = parts_of(arguments)
    async with admin_of(arguments) as admin:
        found = await admin.describe_quotas(parts)
    _show(found, console)
    if not found and not console.as_json:
        console.note("there are no quotas" if not parts else "there is no such quota")
    return ExitCode.OK


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("values", metavar="KEY=VALUE", nargs="+", help=f"{', '.join(QUOTA_KEYS)}; bytes also as 10MiB")
    _add_entity(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="only validate the change")


async def _set(arguments: argparse.Namespace, console: Console) -> ExitCode:
    texts = settings_of(arguments.values)
    values = {known_quota(key): rate_of(key, text) for key, text in texts.items()}
    return await _change(arguments, _required(arguments), values, console)


def _remove_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("keys", metavar="KEY", nargs="*", help="only these values (default: all)")
    _add_entity(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="only validate the change")


async def _remove(arguments: argparse.Namespace, console: Console) -> ExitCode:
    parts = _required(arguments)
    keys = [known_quota(key) for key in arguments.keys]
    async with admin_of(arguments) as admin:
        present = {key for quota in await admin.describe_quotas(parts, strict=True) for key in quota.values}
    missing = [key for key in keys if key not in present]
    if missing or not present:
        what = f"no {missing[0]}" if missing else "no quota"
        raise NotFoundError(f"there is {what} for {_text(parts.items())}", "`horolog quotas list` shows them all")
    return await _change(arguments, parts, dict.fromkeys(keys or sorted(present)), console)


async def _change(
    arguments: argparse.Namespace,
    parts: "Mapping[str, str | None]",
    values: "Mapping[str, float | None]",
    console: Console,
) -> ExitCode:
    """Show the values before and after."""
    from horolog.client.admin.admin_quotas import entity_of

    async with admin_of(arguments) as admin:
        before = {
            key: one for quota in await admin.describe_quotas(parts, strict=True) for key, one in quota.values.items()
        }
        await admin.alter_quotas({entity_of(parts): values}, validate_only=arguments.dry_run)
    rows = [{"entity": dict(parts), "key": key, "from": before.get(key), "to": value} for key, value in values.items()]
    if console.as_json:
        console.json(rows)
    else:
        console.table(
            ("FOR", "KEY", "FROM", "TO"),
            [(_text(parts.items()), key, _number(before.get(key)), _number(value)) for key, value in values.items()],
        )
    return ExitCode.OK


def _show(quotas: "Iterable[Quota]", console: Console) -> None:
    if console.as_json:
        console.json([{"entity": dict(one.entity), "quotas": dict(one.values)} for one in quotas])
        return
    rows = [(one, key, value) for one in quotas for key, value in sorted(one.values.items())]
    console.table(("FOR", "KEY", "VALUE"), [(_text(one.entity), key, _number(value)) for one, key, value in rows])


def _text(entity: "Iterable[tuple[str, str | None]]") -> str:
    return ", ".join(f"{kind} {BY_DEFAULT if name is None else name}" for kind, name in entity)


def _number(value: float | None) -> Any:
    return int(value) if value is not None and value.is_integer() else value


ACTIONS = (
    Action(
        "list",
        "show all quotas, or those of some clients",
        _add_entity,
        _list,
        ("horolog quotas list", "horolog quotas list --user alice", "horolog quotas list --default client-id"),
    ),
    Action(
        "set",
        "set quotas for a user, a client id, both, or an address",
        _set_arguments,
        _set,
        (
            "horolog quotas set producer_byte_rate=10MiB --user alice",
            "horolog quotas set consumer_byte_rate=50MiB request_percentage=200 --default user --client-id reports",
            "horolog quotas set connection_creation_rate=20 --ip 192.0.2.7",
        ),
    ),
    Action(
        "remove",
        "remove quotas",
        _remove_arguments,
        _remove,
        ("horolog quotas remove --user alice", "horolog quotas remove producer_byte_rate --default client-id"),
    ),
)
