"""Suggests the command, action or option that a mistyped one probably is: another tool's name for it, or a similar spelling."""

from collections.abc import Collection

_NAMES_ELSEWHERE = {
    **dict.fromkeys(("ls", "show", "all"), "list"),
    **dict.fromkeys(("rm", "del", "remove", "drop"), "delete"),
    **dict.fromkeys(("add", "new", "make"), "create"),
    **dict.fromkeys(("desc", "describe", "info", "get", "inspect"), "describe"),
    **dict.fromkeys(("update", "change", "set", "edit"), "alter"),
    **dict.fromkeys(("seek", "rewind"), "reset"),
}
_COMMANDS_ELSEWHERE = {
    **dict.fromkeys(("start", "server", "run", "broker"), "serve"),
    **dict.fromkeys(("demo", "quickstart"), "up"),
    **dict.fromkeys(("cat", "tail", "read", "get", "sub", "subscribe"), "consume"),
    **dict.fromkeys(("write", "send", "pub", "publish", "put"), "produce"),
    **dict.fromkeys(("ui", "web"), "console"),
    **dict.fromkeys(("check", "repair", "fsck"), "doctor"),
    **dict.fromkeys(("ping", "status"), "health"),
    **dict.fromkeys(("lookup", "when", "time"), "offsets"),
    **dict.fromkeys(("config", "settings"), "configs"),
    **dict.fromkeys(("acl", "security"), "acls"),
    **dict.fromkeys(("user", "scram"), "users"),
    **dict.fromkeys(("profile",), "profiles"),
}
_OPTIONS_ELSEWHERE = {
    **dict.fromkeys(
        ("--bootstrap-server", "--bootstrap-servers", "--broker-list", "--broker", "--brokers"), "--bootstrap"
    ),
    **dict.fromkeys(("--from", "--start", "--after", "--from-date"), "--since"),
    **dict.fromkeys(("--to", "--end", "--before", "--stop"), "--until"),
    **dict.fromkeys(("--num", "--limit", "--count", "--max-messages"), "--max"),
    **dict.fromkeys(("--consumer-group", "--group-id"), "--group"),
    **dict.fromkeys(("--json", "--print-json"), "--output"),
    **dict.fromkeys(("--timezone", "--zone"), "--tz"),
    **dict.fromkeys(("--execute", "--force", "--no-confirm"), "--yes"),
    **dict.fromkeys(("--topic-config",), "--config"),
}
"""Names in Kafka's scripts, rpk and kcat."""


def option_like(word: str, names: Collection[str]) -> str | None:
    """The likely one of a command's options."""
    return _among(word, names, _OPTIONS_ELSEWHERE) or nearest(word, names)


def action_like(word: str, names: Collection[str]) -> str | None:
    """The likely one of a command's actions, or of an option's values."""
    return known_elsewhere(word, names) or nearest(word, names)


def known_elsewhere(word: str, names: Collection[str]) -> str | None:
    """The action with this name, here or in other tools."""
    return _among(word, names, _NAMES_ELSEWHERE)


def command_elsewhere(word: str, names: Collection[str]) -> str | None:
    """The command with this name in other tools."""
    return _among(word, names, _COMMANDS_ELSEWHERE)


def nearest(word: str, names: Collection[str]) -> str | None:
    """The name with the most similar spelling."""
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), names, n=1)
    return close[0] if close else None


def _among(word: str, names: Collection[str], elsewhere: dict[str, str]) -> str | None:
    lowered = word.lower()
    found = lowered if lowered in names else elsewhere.get(lowered)
    return found if found in names else None
