"""Credentials of an S3 store: settings that are given, the environment, a profile."""

import pytest

from horolog.stores.credentials import s3_settings
from horolog.stores.faults import StoreError


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[default]\naws_access_key_id=P\naws_secret_access_key=ps\n[other]\naws_access_key_id=O\naws_secret_access_key=os\n"
    )
    (tmp_path / ".aws/config").write_text("[default]\nregion=eu-1\n[profile other]\nendpoint_url=http://other\n")
    return {"HOME": str(tmp_path)}


def test_what_is_given_overrides_the_environment_and_that_a_profile(home):
    found = s3_settings({}, home)
    assert found == {
        "access_key_id": "P", "secret_access_key": "ps", "session_token": "", "endpoint": "", "region": "eu-1",
        "unsigned_payload": "",
    }  # fmt: skip
    other = s3_settings({}, home | {"AWS_PROFILE": "other"})
    assert (other["access_key_id"], other["endpoint"]) == ("O", "http://other")
    around = home | {
        "AWS_ACCESS_KEY_ID": "E",
        "AWS_SECRET_ACCESS_KEY": "es",
        "AWS_SESSION_TOKEN": "et",
        "AWS_REGION": "r",
    }
    found = s3_settings({}, around)
    assert (found["access_key_id"], found["session_token"], found["region"]) == ("E", "et", "r")
    found = s3_settings({"access_key_id": "G", "secret_access_key": "gs", "endpoint": "http://g"}, around)
    assert found == {
        "access_key_id": "G", "secret_access_key": "gs", "session_token": "", "endpoint": "http://g", "region": "r",
        "unsigned_payload": "",
    }, "keys of two sources are never mixed"  # fmt: skip


def test_profiles_that_cannot_be_read(home, tmp_path):
    with pytest.raises(StoreError, match="the profile none has no aws_access_key_id"):
        s3_settings({}, home | {"AWS_PROFILE": "none"})
    (tmp_path / ".aws/credentials").write_text("no section")
    with pytest.raises(StoreError, match="cannot be read as a file of profiles"):
        s3_settings({}, home)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("[default]\naws_access_key_id=X\n")
    assert s3_settings({}, home | {"AWS_SHARED_CREDENTIALS_FILE": str(elsewhere)})["access_key_id"] == "X"
