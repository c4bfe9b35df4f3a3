"""Real S3 servers for the tests of stores, where Go can build the one, and Java runs the other."""

import shutil

import pytest

from tests.support import s3_proxy, s3_server


def pytest_itemcollected(item):
    if "s3_folder" in item.fixturenames:
        item.add_marker("go")
        item.add_marker(pytest.mark.timeout(400))  # where it has to be built first


@pytest.fixture
def s3_folder(tmp_path):
    if shutil.which("go") is None:
        pytest.skip("an S3 server is built with Go, which is not installed")
    return tmp_path


@pytest.fixture(params=[s3_server.Process, pytest.param(s3_proxy.S3Proxy, marks=pytest.mark.java)])
def s3_kind(request):
    return request.param
