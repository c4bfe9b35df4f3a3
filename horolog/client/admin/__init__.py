"""Administration: topics, settings, groups, access lists, users, quotas and brokers, and offsets committed for a group."""

__all__ = [
    "admin",
    "admin_cluster",
    "admin_configs",
    "admin_groups",
    "admin_placement",
    "admin_quotas",
    "admin_share_groups",
    "admin_streams_groups",
    "admin_topics",
    "admin_users",
    "commits",
    "streams_view",
]
