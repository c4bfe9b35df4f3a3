"""Shared by all commands: exit codes, errors, output, arguments; nothing here is expensive to import."""
