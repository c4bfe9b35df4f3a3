"""Share groups (KIP-932): their members, assignments and states of partitions, as the group coordinator knows them."""

__all__ = [
    "latest_offsets",
    "share_coordinator",
    "share_decisions",
    "share_group",
    "share_loading",
    "share_offsets",
    "share_settings",
    "share_states",
    "simple_assignor",
]
