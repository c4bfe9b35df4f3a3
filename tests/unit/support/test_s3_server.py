"""The S3 server of tests when it was killed: what it has noted of objects that it has not made is forgotten."""

from tests.support.s3_server import forget_unmade


def test_only_objects_that_were_not_made_are_forgotten(tmp_path):
    sidecar, objects = tmp_path / "metadata", tmp_path / "objects"
    for key in ("made", "cluster/meta/log/1", "cluster/unmade"):
        (sidecar / "lake" / key / "meta").mkdir(parents=True)
    for key in ("made", "cluster/meta/log/1"):
        (objects / "lake" / key).parent.mkdir(parents=True, exist_ok=True)
        (objects / "lake" / key).touch()
    forget_unmade(sidecar, objects)
    assert (sidecar / "lake/made/meta").is_dir()
    assert (sidecar / "lake/cluster/meta/log/1/meta").is_dir()
    assert not (sidecar / "lake/cluster/unmade").exists()
