"""The front of the package imports the home of a name at its first use."""

import subprocess
import sys

import pytest

from horolog import pipeline

_CHECK = """
import sys
from horolog import pipeline
assert not {"pyspark", "pyarrow", "numpy"} & set(sys.modules)
pipeline.session, pipeline.activate
assert "pyarrow" not in sys.modules
"""


def test_importing_it_imports_no_spark_and_no_arrow():
    subprocess.run([sys.executable, "-c", _CHECK], check=True, timeout=60)


def test_every_name_has_a_home():
    assert set(pipeline._HOMES) == set(pipeline.__all__)
    assert callable(pipeline.session)
    assert callable(pipeline.table)


def test_another_name_is_told():
    with pytest.raises(AttributeError, match=r"module 'horolog\.pipeline' has no attribute 'sesion'"):
        _ = pipeline.sesion
