"""Checks a file against the schema of the service that reads it, as `check-jsonschema` does on the command line."""

from pathlib import Path


def faults(path: Path, schema: str) -> str:
    """What a file breaks of a schema that comes with the tool, empty if nothing.

    The tool takes seconds to import: only a process that checks a file pays for that, and once.
    """
    from check_jsonschema import main
    from click.testing import CliRunner

    done = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", str(path)])
    return "" if done.exit_code == 0 else done.output or repr(done.exception)
