"""The tables of rooms in docs/design.md: the packages of a layers contract from the top down, each with the sentence it opens with."""

import ast
import re
import tomllib

from tools.reference import ROOT


def rooms(container: str) -> list[str]:
    """The packages that the container's layers contract orders; single modules beside them are no rooms."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (contract,) = (one for one in settings["contracts"] if container in one.get("containers", ()))
    folder = ROOT / container.replace(".", "/")
    names = [name for layer in contract["layers"] for name in re.split(r"[|: ]+", layer)]
    return [name for name in names if (folder / name).is_dir()]


def duty(package: str) -> str:
    front = ROOT / package.replace(".", "/") / "__init__.py"
    text = ast.get_docstring(ast.parse(front.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def table(container: str) -> str:
    rows = [f"| `{name}` | {duty(f'{container}.{name}')} |" for name in rooms(container)]
    return "\n".join(["| room | duty |", "|---|---|", *rows]) + "\n"
