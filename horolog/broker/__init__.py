"""The broker: the partition log, the coordinators that keep state in it, and the server in front."""
