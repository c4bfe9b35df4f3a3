"""Several brokers over one data folder, so that several cores work: `horolog.workers`. One process imports nothing of it but `serve`.

The supervisor starts a process for each worker and stays small: it imports nothing of the log, of handlers or of the network.
"""

__all__ = [
    "serve",
    "watching",
]
