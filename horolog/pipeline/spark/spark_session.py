"""A Spark session with sane defaults, on one machine or on a cluster."""

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.pipeline.spark.java import java_home
from horolog.pipeline.spark.notebook import listen, tasks_of
from horolog.pipeline.spark.spark_versions import require_data_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
"""For short runs: half the processor time until the first result. Long ones are faster without, see `quick`."""

_LONGEST_SOCKET_FOLDER = 60
"""macOS has 104 bytes for a socket's path; Spark's names take 42 of them."""

HIDDEN = (
    r"(?i)secret|password|token|access[.]?key|account[.]?key|keystore[.]?key|user[.]info|jaas|credential"
    r"|key[.]pem|private key|://[^/@\s]*:[^/@\s]*@"
)
"""Names and values that Spark shows as redacted: its own, and those of our options that they do not match."""
WORKER_DAEMON = "horolog.pipeline.spark.worker_daemon"
DEFAULTS = {
    "spark.redaction.regex": HIDDEN,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "8",
    "spark.python.worker.reuse": "true",
    "spark.log.level": "WARN",
}
ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def settings(master: str | None, conf: dict[str, Any], *, quick: bool) -> dict[str, str]:
    """What a session is made with; `conf` wins, with `_` for `.` in its names if they have no `.`."""
    own = {name if "." in name else name.replace("_", "."): _text(value) for name, value in conf.items()}
    chosen = dict(DEFAULTS)
    if master is not None and master.startswith("local"):
        chosen |= ON_THIS_MACHINE | sockets_in(socket_folder())
    if quick:
        chosen |= {"spark.driver.defaultJavaOptions": _QUICK_START, "spark.executor.defaultJavaOptions": _QUICK_START}
    return chosen | own


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def session(
    master: str | None = "local[*]", app_name: str = "horolog", *, quick: bool = False, **conf: Any
) -> "SparkSession":
    """A session on `master` (None: where spark-submit says); further settings as `spark_sql_shuffle_partitions=4` or `**{"spark.sql.shuffle.partitions": 4}`.

    Its Python workers run this Python, times are UTC, and Java is found or brought along. `quick` starts in half the
    time and computes more slowly: for tests and small jobs.
    """
    from pyspark.sql import SparkSession

    require_data_sources()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _show_workers_this_package()
    home = java_home(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for name, value in settings(master, conf, quick=quick).items():
        builder = builder.config(name, value)
    shown = listen(socket_folder)
    spark = builder.getOrCreate()
    if shown is not None:
        shown.tasks = partial(tasks_of, spark)
    return spark


def sockets_in(folder: str) -> dict[str, str]:
    """Have Spark and its local workers use Unix sockets in a folder, which cost less than TCP, if their paths are short enough."""
    if os.name != "posix" or len(os.fsencode(folder)) > _LONGEST_SOCKET_FOLDER:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
        "spark.python.daemon.module": WORKER_DAEMON,
    }


@cache
def socket_folder() -> str:
    """Gone when this process ends: Spark leaves its sockets behind."""
    folder = tempfile.mkdtemp(prefix="horolog-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def activate(spark: "SparkSession") -> None:
    """Have `df.write.format("horolog")` work in this thread of Python too.

    Spark 4.2 looks for the format of a write in the session that is active in the thread; in one that has made no session none is.
    With Spark Connect there is nothing to do.
    """
    from pyspark.sql.utils import is_remote

    if not is_remote():
        spark.createDataFrame([], "nothing int")  # what makes a session the active one of a thread


def _show_workers_this_package() -> None:
    """Have local workers find the data source where this process has it, installed or in a checkout."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, root])
