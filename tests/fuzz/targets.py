"""The fuzz targets by name; each lives in a module of its own that is imported when it is asked for, so that atheris can watch it."""

from collections.abc import Callable
from importlib import import_module

Target = Callable[[bytes], object]

TARGETS = (
    "certificates",
    "compression",
    "files",
    "folder",
    "frames",
    "messages",
    "records",
    "sasl",
    "server",
    "settings",
)


def load(name: str) -> Target:
    """The function that takes one input. It returns where the input was refused, or None; whatever it raises is a finding."""
    target: Target = import_module(f"tests.fuzz.target_{name}").target
    return target


def place(error: Exception) -> str:
    """Where an error was raised: tells refusals apart."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{type(error).__name__}:{at.tb_frame.f_code.co_name}:{at.tb_lineno}" if at else type(error).__name__
