"""`horolog files`: writes the ready-made files that come with the program, for installations from a wheel."""

import argparse

from horolog.commands.arguments import add_output, describe
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError
from horolog.commands.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the files that come with horolog: settings, a systemd unit, and files for Prometheus and Grafana. Without a name, list them; with a name, print the file; with --to, copy all of them or those that you name.",
        "horolog files",
        "horolog files horolog.service | sudo tee /etc/systemd/system/horolog.service",
        "horolog files --to monitoring prometheus-rules.yml grafana-horolog.json",
    )
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument(
        "--to", metavar="FOLDER", help="copy the files to this folder; existing files are not overwritten"
    )
    add_output(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.broker.config.shipped_files import FILES, named

    try:
        chosen = list(named(arguments.names))
    except KeyError as error:
        there = ", ".join(one.name for one in FILES)
        raise NotFoundError(f"horolog has no file {error.args[0]}", f"the files are {there}") from error
    if arguments.to is not None:
        return _copy({one.name: one.path.read_bytes() for one in chosen}, arguments.to, console)
    if console.as_json:
        console.json([{"name": one.name, "what": one.sentence, "path": str(one.path)} for one in chosen])
    elif arguments.names:
        for one in chosen:
            console.write_bytes(one.path.read_bytes())
    else:
        console.table(("NAME", "DESCRIPTION"), [(one.name, one.sentence) for one in chosen])
    return ExitCode.OK


def _copy(contents: dict[str, bytes], folder: str, console: Console) -> ExitCode:
    """Write all files, or none if one exists already."""
    from pathlib import Path

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    in_the_way = [name for name in contents if (target / name).exists()]
    if in_the_way:
        raise CommandError(f"{target / in_the_way[0]} exists already", "choose another folder, or move that one away")
    for name, data in contents.items():
        (target / name).write_bytes(data)
    if console.as_json:
        console.json([{"name": name, "path": str(target / name)} for name in contents])
    else:
        for name in contents:
            console.print(str(target / name))
    return ExitCode.OK
