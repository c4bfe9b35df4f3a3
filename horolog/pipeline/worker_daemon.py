"""The path by which programs import the names of `pipeline.spark.worker_daemon`."""

from horolog.pipeline.spark.worker_daemon import DAEMON, hush, hush_this_process, run

__all__ = [
    "DAEMON",
    "hush",
    "hush_this_process",
    "run",
]

if __name__ == "__main__":
    run()
