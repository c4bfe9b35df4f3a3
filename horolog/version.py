"""The version of horolog: pyproject.toml reads it here, so that it is said once."""

__version__ = "0.1.0"
