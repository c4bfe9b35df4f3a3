"""The credentials of an S3 store as every tool of Amazon's finds them: the environment's AWS_*, else a profile of ~/.aws.

Keys of two sources are never mixed. With none of them the store's client asks the machine that it runs on.
"""

import configparser
from collections.abc import Mapping
from pathlib import Path

from horolog.stores.faults import StoreError

CREDENTIALS = ("access_key_id", "secret_access_key", "session_token")
_ENVIRONMENT = {
    "access_key_id": ("AWS_ACCESS_KEY_ID",),
    "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "unsigned_payload": ("AWS_UNSIGNED_PAYLOAD",),
}
_PROFILE = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "endpoint": "endpoint_url",
    "region": "region",
}


def s3_settings(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The keys and other settings of an S3 store; `given` overrides the environment, which overrides a profile."""
    around = {
        own: next((environment[name] for name in names if environment.get(name)), "")
        for own, names in _ENVIRONMENT.items()
    }
    sources: list[Mapping[str, str]] = [given, around]
    if not given.get("access_key_id") and not around["access_key_id"]:
        sources.append(_profile(environment))
    keys = next((one for one in sources if one.get("access_key_id")), {})
    found = {name: keys.get(name, "") for name in CREDENTIALS}
    others = [name for name in _ENVIRONMENT if name not in CREDENTIALS]
    return found | {name: next((one[name] for one in sources if one.get(name)), "") for name in others}


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of the profile AWS_PROFILE, or `default`."""
    name = environment.get("AWS_PROFILE", "default")
    found: dict[str, str] = {}
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(environment.get(variable) or home / file)
        except configparser.Error:
            raise StoreError(
                f"{environment.get(variable) or home / file} cannot be read as a file of profiles"
            ) from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if "AWS_PROFILE" in environment and "aws_access_key_id" not in found:
        raise StoreError(f"AWS_PROFILE: the profile {name} has no aws_access_key_id in {home}")
    return {own: found.get(theirs, "") for own, theirs in _PROFILE.items()}
