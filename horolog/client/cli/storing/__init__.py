"""The actions of `horolog store` that read or write a whole prefix: their reports, their progress and their exit codes."""

__all__ = ["exporting", "importing", "verify"]
