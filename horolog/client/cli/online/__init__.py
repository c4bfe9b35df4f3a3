"""Shared by commands that talk to a broker."""
