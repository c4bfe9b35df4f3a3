"""The partition log: segments, indexes, time, and what survives a crash. Nothing here knows the network or an event loop."""
