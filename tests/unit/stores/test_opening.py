"""The store of a URL, and the message where the package for it is not installed."""

import importlib.util

import pytest

from horolog.stores import opening
from horolog.stores.faults import StoreError


def test_a_url_is_opened(tmp_path):
    pytest.importorskip("obstore")
    store = opening.open_store(f"file://{tmp_path}")
    assert repr(store) == f"<BucketStore file://{tmp_path}>"
    with pytest.raises(StoreError, match="expected"):
        opening.open_store("nowhere")


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"obstore is not installed: pip install 'horolog\[store\]'"):
        opening.open_store("s3://b")
