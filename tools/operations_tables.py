"""Writes the parts of docs/operations.md that come from tables of the program: dynamic settings and metrics."""

import sys
from pathlib import Path

from horolog.broker.config.settings import SPECS
from horolog.broker.observability.exposition import CATALOGUE, table
from horolog.broker.workers.watching import FAMILIES

DYNAMIC, METRICS, END = "<!-- dynamic settings -->", "<!-- metrics -->", "<!-- end -->"


def dynamic_settings() -> str:
    rows = ["| setting | description |", "|---|---|"]
    rows += [f"| `{key}` | {spec.sentence} |" for key, spec in sorted(SPECS.items()) if spec.dynamic]
    return "\n".join(rows) + "\n"


def filled(page: str) -> str:
    """The page with both tables brought up to date."""
    for mark, text in ((DYNAMIC, dynamic_settings()), (METRICS, table((*CATALOGUE, *FAMILIES)))):
        before, _, rest = page.partition(mark)
        _, _, after = rest.partition(END)
        page = f"{before}{mark}\n{text}{END}{after}"
    return page


def main(path: Path) -> None:
    path.write_text(filled(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
