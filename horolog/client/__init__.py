"""The outside of a broker: the client library and the command line. Programs import the names from `horolog`."""
