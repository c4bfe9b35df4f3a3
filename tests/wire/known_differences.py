"""Where horolog's answers differ from those of all recorded brokers, and why: the only cases of the prober that may fail."""

ISSUE_5 = "groups and transactions are another issue's work"
RANGES = "the newest version served here is not the newest of any one recorded release"

PREFIXES: dict[str, str] = {
    "f.": ISSUE_5,
    "b.t.": ISSUE_5,
}
"""Whole families; a case of them that holds already is welcome."""

CASES: dict[str, str] = {}
"""Single cases; one that holds must leave the table."""


def reason(name: str) -> str | None:
    if name in CASES:
        return CASES[name]
    return next((why for prefix, why in PREFIXES.items() if name.startswith(prefix)), None)
