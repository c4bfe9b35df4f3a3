"""The command line `horolog`. The console writes access rules, quotas and users in its words."""

__all__ = [
    "acls",
    "main",
    "quotas",
    "users",
]
