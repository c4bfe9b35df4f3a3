"""What talks to a broker from outside: the command line, and later the client library."""
