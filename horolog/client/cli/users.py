"""`horolog users`: SASL/SCRAM users of a running broker, or of a data folder that no broker runs on yet."""

import argparse
from pathlib import Path

from horolog.commands.arguments import add_data_folders, positive_number
from horolog.commands.console import Console, is_terminal
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.access_words import (
    DEFAULT_MECHANISM,
    LEAST_ITERATIONS,
    MECHANISMS,
    MOST_ITERATIONS,
    MOST_PASSWORD_BYTES,
)
from horolog.commands.online.actions import Action, add_actions, run_action
from horolog.commands.online.connecting import admin_of


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(
        parser,
        "Add, list and remove the SASL/SCRAM users of a running broker or, with --data, of a data folder.",
        ACTIONS,
    )


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- add


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--mechanism", choices=MECHANISMS, default=DEFAULT_MECHANISM, help=f"default: {DEFAULT_MECHANISM}"
    )
    parser.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help="a file with the password in its first line (default: ask for it)",
    )
    parser.add_argument(
        "--iterations",
        type=positive_number,
        default=LEAST_ITERATIONS,
        metavar="COUNT",
        help=f"iterations of the hash, from {LEAST_ITERATIONS} to {MOST_ITERATIONS} (default: {LEAST_ITERATIONS})",
    )
    add_data_folders(parser)


async def _add(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Add a user, or change the password of an existing one."""
    if not LEAST_ITERATIONS <= arguments.iterations <= MOST_ITERATIONS:
        raise UsageError(f"--iterations {arguments.iterations}: expected {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
    if not arguments.name:
        raise UsageError("the name of the user is empty")
    password = _password(arguments, console)
    from horolog.broker.security.sasl import scram_keys

    kind = scram_keys.KINDS[arguments.mechanism]
    if arguments.data:
        from horolog.broker.cluster.cluster_state import RulesChanged
        from horolog.broker.security.users import UserId, rule_of, with_secret
        from horolog.client.cli.examining import folder_rules

        keys = scram_keys.of_password(kind, password, arguments.iterations)
        rule = rule_of(UserId(kind, arguments.name), keys)
        folder_rules.change(arguments.data, lambda rules: RulesChanged(with_secret(rules, [rule])))
    else:
        from horolog.client.admin.admin_users import NewUser

        salt = scram_keys.new_salt()
        salted = kind.salted(password, salt, arguments.iterations)
        user = NewUser(arguments.name, arguments.mechanism, arguments.iterations, salt, salted)
        async with admin_of(arguments) as admin:
            await admin.put_users([user])
    return _told(console, "added", arguments.name, [arguments.mechanism])


def _password(arguments: argparse.Namespace, console: Console) -> str:
    if arguments.password_file is not None:
        try:
            text = arguments.password_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{arguments.password_file} cannot be read: {error}") from error
        lines = text.splitlines()
        password = lines[0] if lines else ""
    else:
        password = _asked(arguments.name, console)
    if not password:
        raise UsageError("the password is empty")
    if len(password.encode()) > MOST_PASSWORD_BYTES:
        raise UsageError(f"the password is longer than {MOST_PASSWORD_BYTES} bytes")
    return password


def _asked(name: str, console: Console) -> str:
    """The password from the terminal, not echoed; asked twice."""
    from getpass import getpass

    if not is_terminal(console.stdin):
        raise UsageError("there is no terminal on which to ask for the password", "give --password-file FILE")
    password = getpass(f"password of {name}: ", console.err)
    if getpass("again: ", console.err) != password:
        raise UsageError("the two passwords differ")
    return password


# -- list, remove


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    users = await _users(arguments)
    rows = [(name, kind, count) for name, counts in sorted(users.items()) for kind, count in sorted(counts.items())]
    if console.as_json:
        console.json([{"user": name, "mechanism": kind, "iterations": count} for name, kind, count in rows])
    else:
        console.table(("USER", "MECHANISM", "ITERATIONS"), rows)
    return ExitCode.OK


async def _users(arguments: argparse.Namespace) -> dict[str, dict[str, int]]:
    """The iterations of each user's passwords, by mechanism."""
    if not arguments.data:
        async with admin_of(arguments) as admin:
            return await admin.describe_users()
    import os

    from horolog.broker.security.users import stored_users
    from horolog.client.cli.examining import folder_rules

    found: dict[str, dict[str, int]] = {}
    for user, keys in stored_users(folder_rules.read_users(arguments.data, os.environ)):
        found.setdefault(user.name, {})[user.kind.name] = keys.iterations
    return found


def _remove_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--mechanism", choices=MECHANISMS, help="only the password for this mechanism (default: all)")
    add_data_folders(parser)


async def _remove(arguments: argparse.Namespace, console: Console) -> ExitCode:
    known = (await _users(arguments)).get(arguments.name, {})
    gone = [one for one in sorted(known) if arguments.mechanism in {None, one}]
    if not gone:
        by = f" with a password for {arguments.mechanism}" if arguments.mechanism else ""
        raise NotFoundError(f"there is no user {arguments.name!r}{by}", "`horolog users list` shows those that exist")
    if arguments.data:
        from horolog.broker.cluster.cluster_state import RulesChanged
        from horolog.broker.security.sasl.scram_keys import KINDS
        from horolog.broker.security.users import UserId
        from horolog.client.cli.examining import folder_rules

        ids = frozenset(UserId(KINDS[one], arguments.name).rule_id for one in gone)
        folder_rules.change(arguments.data, lambda _: RulesChanged(removed=ids))
    else:
        async with admin_of(arguments) as admin:
            for one in gone:  # a request may name a user only once
                await admin.remove_users({arguments.name: one})
    return _told(console, "removed", arguments.name, gone)


def _told(console: Console, verb: str, name: str, mechanisms: list[str]) -> ExitCode:
    if console.as_json:
        console.json([{"user": name, "mechanism": one, "done": verb} for one in mechanisms])
    else:
        console.print(f"{verb} {name} ({', '.join(mechanisms)})")
    return ExitCode.OK


ACTIONS = (
    Action(
        "add",
        "add a user, or change a password",
        _add_arguments,
        _add,
        (
            "horolog users add alice --password-file secret.txt",
            "horolog users add alice --mechanism SCRAM-SHA-256 --data /var/lib/horolog",
        ),
    ),
    Action(
        "list",
        "list users with their mechanisms",
        add_data_folders,
        _list,
        ("horolog users list", "horolog users list --data /var/lib/horolog -o json"),
    ),
    Action(
        "remove",
        "remove a user; its open connections stay open",
        _remove_arguments,
        _remove,
        ("horolog users remove alice", "horolog users remove alice --data /var/lib/horolog"),
    ),
)
