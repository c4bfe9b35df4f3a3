"""A real S3 server for the tests of stores, where Go can build it."""

import shutil

import pytest


def pytest_itemcollected(item):
    if "s3_folder" in item.fixturenames:
        item.add_marker("go")
        item.add_marker(pytest.mark.timeout(400))  # where it has to be built first


@pytest.fixture
def s3_folder(tmp_path):
    if shutil.which("go") is None:
        pytest.skip("an S3 server is built with Go, which is not installed")
    return tmp_path
