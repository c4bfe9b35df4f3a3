"""What talks to a broker from outside: the client library and the command line. Programs import the names from `horolog`."""
