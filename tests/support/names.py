"""Names for topics and groups that no other test uses, on no broker."""

import uuid


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"
