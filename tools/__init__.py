"""Writes the parts of docs that come from code: `make docs`."""
