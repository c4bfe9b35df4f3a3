"""The command line `horolog`."""
