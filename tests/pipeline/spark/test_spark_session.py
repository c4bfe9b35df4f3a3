"""The session's own choices: how Spark talks with its workers, and that nothing of it is left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from horolog.pipeline.spark.spark_session import sockets_in

_RUN = """
from pathlib import Path
from horolog.pipeline import session
spark = session("local[1]", quick=True)
folder = Path(spark.conf.get("spark.python.unix.domain.socket.dir"))
assert spark.sparkContext.parallelize([3], 1).map(lambda n: n * n).collect() == [9]
assert list(folder.iterdir())
print(folder)
spark.stop()
"""


def test_a_path_that_is_too_long_for_sockets_is_left():
    assert sockets_in("/" + "x" * 60) == {}


@pytest.mark.spark
def test_sockets_are_gone_when_the_program_has_ended():
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    folder = done.stdout.strip()
    assert sockets_in(folder)["spark.python.unix.domain.socket.dir"] == folder
    assert not Path(folder).exists()
