"""Tests of meta.properties: both versions are read, written and refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.files import CheckpointError, MetaProperties, meta_properties
from horolog.broker.log.storage import MemoryStorage


def test_version_1_of_a_real_broker_comes_back_byte_for_byte(golden_root):
    data = (golden_root / "v2-txn/clean/logdir/meta.properties").read_bytes()
    meta = meta_properties.decode(data)
    assert meta == MetaProperties(1, 1, "AAAAAAAAAAAAAAAAAAAAAQ", "s9siP80qpCeL4cZFnCHSGQ", {})
    assert meta_properties.encode(meta, 1795189813_000) == data


def test_version_0_of_a_real_broker(golden_root):
    data = (golden_root / "v1-none-ct/clean/logdir/meta.properties").read_bytes()
    assert meta_properties.decode(data) == MetaProperties(0, 0, None, None, {})


def test_java_properties_in_all_their_forms():
    data = b"! comment\r\n  version : 1\nnode.id   7\ncluster.id = a\\=b\\\\\\u0041\\t\n\nplain\n"
    assert meta_properties.decode(data) == MetaProperties(1, 7, "a=b\\A\t", None, {"plain": ""})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version=2\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\n",
        b"version=1\ncluster.id=x\nnode.id=-3\n",
        b"version=0\nbroker.id=9999999999\n",
        bytes(100),
    ],
)
def test_what_names_no_node_is_refused(data):
    with pytest.raises(CheckpointError):
        meta_properties.decode(data)


@given(
    st.integers(0, 2**31 - 1),
    st.text(st.characters(min_codepoint=32, max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1),
)
def test_values_survive_the_round_trip(node_id, text):
    meta = MetaProperties(1, node_id, text, text, {"other": text})
    assert meta_properties.decode(meta_properties.encode(meta, 0)) == meta


def test_a_folder_without_the_file_belongs_to_nobody():
    storage = MemoryStorage()
    storage.make_dir("/data")
    assert meta_properties.load(storage, "/data") is None
    meta = MetaProperties(1, 3, "c")
    meta_properties.save(storage, "/data", meta, 0)
    assert meta_properties.load(storage, "/data") == meta


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"node.id=3\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\ndirectory.id=cu", (3, "AAAAAAAAAAAAAAAAAAAAAQ", None)),
        (b"broker.id=3\ndirectory.id=s9siP80qpCeL4cZFnCHSGQ\n", (3, None, "s9siP80qpCeL4cZFnCHSGQ")),
        (b"node.id=\xff\xfe\ncluster.id=no id\n", (None, None, None)),
        (b"", (None, None, None)),
    ],
)
def test_of_a_damaged_file_counts_what_looks_as_it_should(data, found):
    meta = meta_properties.salvage(data)
    assert (meta.node_id, meta.cluster_id, meta.directory_id) == found
    assert meta.version == 1


@pytest.mark.parametrize("meta", [MetaProperties(1, 3), MetaProperties(1, None, "c")])
def test_a_file_that_would_be_refused_is_not_written(meta):
    with pytest.raises(AssertionError, match=r"without node\.id or cluster\.id"):
        meta_properties.encode(meta, 0)
