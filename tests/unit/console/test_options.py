"""Clusters have the names of their first addresses, and each is there once."""

import pytest

from horolog.console.options import Cluster, Options, clusters_of


def test_clusters_are_named_by_their_first_address():
    found = clusters_of(["a:1,b:2", "c"], None)
    assert found == (Cluster("a:1", "a:1,b:2"), Cluster("c:9092", "c"))
    options = Options(found)
    assert options.cluster("") is found[0]
    assert options.cluster("c:9092") is found[1]
    assert options.cluster("other:1") is None


@pytest.mark.parametrize(
    ("given", "said"), [(["a:1", "a:1"], "twice"), (["a:x"], "is not an address"), ([""], "no bootstrap")]
)
def test_what_is_no_cluster_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        clusters_of(given, None)


def test_secrets_are_in_no_representation():
    assert "hush" not in repr(Options(clusters_of(["a"], None), token="hush"))
