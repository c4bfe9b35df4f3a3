"""The rules of topic names: what they may consist of, which are internal, and which are too alike."""

from __future__ import annotations

import re

MAX_NAME_LENGTH = 249
"""A folder is named `<topic>-<partition>`, with room for the endings of folders that are being removed."""

GROUP_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"

INTERNAL_TOPICS = frozenset({GROUP_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

KRAFT_METADATA = "__cluster_metadata"
"""The log of a KRaft controller: a folder of this name in an adopted data folder is never a topic."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def wrong_with(name: str) -> str | None:
    """The fault of a topic name, if it has one."""
    if not name:
        return "the empty string is not a topic name"
    if name in {".", ".."}:
        return f"a topic cannot be named {name!r}"
    if len(name) > MAX_NAME_LENGTH:
        return f"a topic name of {len(name)} characters is longer than {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"topic name {name!r} has characters other than ASCII letters and digits, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Names with equal keys collide: metric names turn dots into underscores."""
    return name.replace(".", "_")
