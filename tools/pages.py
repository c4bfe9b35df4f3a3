"""`python -m tools.pages`: write the generated parts of docs anew, between the marks that begin and end them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools import api_table, performance_summary, rooms, state_diagrams
from tools.reference import ROOT

DOCS = ROOT / "docs"
END = "<!-- end -->"
PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "apis.md": {"<!-- served -->": api_table.served, "<!-- not served -->": api_table.not_served},
    "states.md": {
        "<!-- classic group -->": state_diagrams.classic_diagram,
        "<!-- answers of a classic group -->": state_diagrams.classic_answers,
        "<!-- transaction -->": state_diagrams.transaction_diagram,
    },
    "performance.md": {"<!-- summary -->": performance_summary.table},
    "security.md": {"<!-- needs -->": api_table.needed},
    "design.md": {
        "<!-- rooms of the broker -->": partial(rooms.table, "horolog.broker"),
        "<!-- rooms of the log -->": partial(rooms.table, "horolog.broker.log"),
        "<!-- rooms of the client -->": partial(rooms.table, "horolog.client"),
        "<!-- rooms of the pipeline -->": partial(rooms.table, "horolog.pipeline"),
    },
}


def filled(name: str, page: str) -> str:
    """The page with its generated parts as they are now."""
    for mark, write in PARTS[name].items():
        page = with_part(page, mark, write())
    return page


def with_part(page: str, mark: str, part: str) -> str:
    """The page with the lines between a mark and the next `END` replaced. Raises ValueError if it has no such marks."""
    before, found, rest = page.partition(mark)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"the page has no part from {mark} to {END}")
    return f"{before}{mark}\n{part}{END}{after}"


def main(docs: Path = DOCS) -> None:
    for name in PARTS:
        path = docs / name
        path.write_text(filled(name, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
