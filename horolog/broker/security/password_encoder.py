"""Encrypts the secrets that the cluster keeps on disk, keys of SCRAM users and settings that are passwords, with a secret of the owner.

A secret is encoded where a change is decided and decoded where it is used: state, `horolog-cluster` and `horolog-journal` hold only the
encoded form. A setting becomes the text

    $encrypted$1$<salt>$<data>

both in URL-safe base64. The rule of a user has the content `{"encrypted": "<such a text>"}`, which encodes its former content as JSON.
The data is AES-SIV (RFC 5297, 512 bits of key) over the place of the secret and its text: it can be read in no other place and cannot be
altered, and the same text in the same place always gives the same data. The key is scrypt of the owner's secret with the salt. A cluster
has one salt, unless several brokers make their first at once.

`password.encoder.secret` is the owner's secret, as in Kafka before 4.0, or the systemd credential of that name
(`$CREDENTIALS_DIRECTORY/password.encoder.secret`); `password.encoder.old.secret` is the previous one, which still decodes. With only an
old one, everything is decoded for good. Kafka 4 stores these secrets in plain text, so that is possible here, too; the log says so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from horolog.broker.config.listener_keys import find
from horolog.broker.config.setting_types import ConfigType, SettingsError
from horolog.broker.config.settings import SPECS, Settings
from horolog.broker.on_record.stored_rules import ENCRYPTED, USER, RuleId, Rules, StoredRule

SECRET: Final = "password.encoder.secret"  # noqa: S105 - the names of settings
OLD_SECRET: Final = "password.encoder.old.secret"  # noqa: S105
CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
_FORM: Final = "1"
_FIELD: Final = "encrypted"
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 64
_SCRYPT: Final = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 64 << 20}


class NotDecoded(Exception):
    """A secret is encrypted, and none of the given secrets decodes it."""


class _Key:
    """The ciphers of one secret of the owner, by salt."""

    def __init__(self, name: str, secret: str) -> None:
        self.name = name
        self._secret = secret.encode()
        self._by_salt: dict[bytes, Any] = {}

    def __repr__(self) -> str:
        return f"<_Key of {self.name}>"

    def cipher(self, salt: bytes) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        found = self._by_salt.get(salt)
        if found is None:
            derived = hashlib.scrypt(self._secret, salt=salt, dklen=_KEY_BYTES, **_SCRYPT)
            found = self._by_salt[salt] = AESSIV(derived)
        return found


class PasswordEncoder:
    """See the module's docstring; without secrets of the owner it changes nothing, and refuses encrypted ones."""

    def __init__(self, secret: str | None = None, old_secret: str | None = None) -> None:
        """Raises SettingsError."""
        self._new = None if secret is None else _Key(SECRET, secret)
        keys = (self._new, None if old_secret is None else _Key(OLD_SECRET, old_secret))
        self._keys = tuple(key for key in keys if key is not None)
        self._salt = b""
        if self._keys and find_spec("cryptography") is None:
            advice = "it needs the package cryptography; install it: pip install 'horolog[tls]'"
            raise SettingsError(self._keys[0].name, None, advice)

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str] = os.environ) -> PasswordEncoder:
        """From the settings, or from the credentials of systemd. Raises SettingsError."""
        secret, old = settings.password_encoder_secret, settings.password_encoder_old_secret
        folder = environ.get(CREDENTIALS)
        if folder:
            secret, old = secret or _credential(folder, SECRET), old or _credential(folder, OLD_SECRET)
        return cls(secret, old)

    def __repr__(self) -> str:
        return f"<PasswordEncoder by {', '.join(key.name for key in self._keys) or 'nothing'}>"

    @property
    def encrypts(self) -> bool:
        return self._new is not None

    # -- texts

    def encode(self, text: str, place: str) -> str:
        """The text as it is stored; a text that is encoded already is encoded again with the newest secret."""
        if self._new is None:
            return self.decode(text, place)
        plain = self._decoded_or_plain(text, place)
        self._salt = self._salt or os.urandom(_SALT_BYTES)
        data = self._new.cipher(self._salt).encrypt(plain.encode(), [place.encode()])
        return f"{ENCRYPTED}{_FORM}${_base64(self._salt)}${_base64(data)}"

    def decode(self, text: str, place: str) -> str:
        """Raises NotDecoded."""
        if not text.startswith(ENCRYPTED):
            return text
        from cryptography.exceptions import InvalidTag

        try:
            form, salt, data = text.removeprefix(ENCRYPTED).split("$")
            if form != _FORM:
                raise NotDecoded(f"{place} is encrypted by a later release: start that one, or a newer one")
            decoded_salt, decoded_data = base64.urlsafe_b64decode(salt), base64.urlsafe_b64decode(data)
        except ValueError:
            return text  # a plain password that begins so
        for key in self._keys:
            try:
                plain: bytes = key.cipher(decoded_salt).decrypt(decoded_data, [place.encode()])
            except (InvalidTag, ValueError):
                continue
            if key is self._new and not self._salt:
                self._salt = decoded_salt
            return plain.decode()
        raise NotDecoded(self._why_not(place))

    def _why_not(self, place: str) -> str:
        if not self._keys:
            return f"{place} is encrypted: give {SECRET}, or the systemd credential of that name"
        names = " nor ".join(key.name for key in self._keys)
        what = f"neither by {names}" if len(self._keys) > 1 else f"not by this {names}"
        return f"{place} is encrypted, and {what}: set the secret that encrypted it ({OLD_SECRET} for an earlier one)"

    def _decoded_or_plain(self, text: str, place: str) -> str:
        """A plain password may look as if it were encoded."""
        try:
            return self.decode(text, place)
        except NotDecoded:
            return text

    # -- settings that were changed while running

    def encoded_configs(self, configs: Mapping[str, str]) -> dict[str, str]:
        return _passwords_by(self.encode, configs)

    def decoded_configs(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Raises NotDecoded."""
        return _passwords_by(self.decode, configs)

    # -- rules

    def encoded_rule(self, rule: StoredRule) -> StoredRule:
        if rule.kind != USER or not (self._keys or _FIELD in rule.content):
            return rule
        plain = self.decoded_rule(rule)
        if self._new is None:
            return plain
        text = json.dumps(dict(plain.content), sort_keys=True)
        encoded = {_FIELD: self.encode(text, _place_of(rule))}
        return rule if rule.content == encoded else StoredRule(rule.kind, rule.key, encoded)

    def decoded_rule(self, rule: StoredRule) -> StoredRule:
        """Raises NotDecoded."""
        text = rule.content.get(_FIELD) if rule.kind == USER else None
        if not isinstance(text, str):
            return rule
        return StoredRule(rule.kind, rule.key, json.loads(self.decode(text, _place_of(rule))))

    def encoded_rules(self, rules: Rules) -> dict[RuleId, StoredRule]:
        return {key: self.encoded_rule(rule) for key, rule in rules.items()}

    def decoded_rules(self, rules: Rules) -> dict[RuleId, StoredRule]:
        """Raises NotDecoded."""
        return {key: self.decoded_rule(rule) for key, rule in rules.items()}

    def encoded_beside(self, put: Iterable[StoredRule], rules: Rules) -> tuple[StoredRule, ...]:
        """New rules as they are stored, with the salt of the present `rules`."""
        if self._new is not None and not self._salt:
            encoded = (rule for rule in rules.values() if rule.kind == USER and _FIELD in rule.content)
            for rule in encoded:
                self.decoded_rule(rule)
                break
        return tuple(map(self.encoded_rule, put))


def secrets_in(rules: Rules, broker_configs: Mapping[str, Mapping[str, str]]) -> int:
    """How many secrets are stored in plain text."""
    users = sum(1 for rule in rules.values() if rule.kind == USER and _FIELD not in rule.content)
    configs = (pair for one in broker_configs.values() for pair in one.items())
    return users + sum(1 for key, text in configs if _is_password(key) and not text.startswith(ENCRYPTED))


def _passwords_by(code: Callable[[str, str], str], configs: Mapping[str, str]) -> dict[str, str]:
    return {key: code(text, f"the setting {key}") if _is_password(key) else text for key, text in configs.items()}


def _is_password(key: str) -> bool:
    spec = find(key, SPECS)
    return spec is not None and spec.type is ConfigType.PASSWORD


def _place_of(rule: StoredRule) -> str:
    return f"the user {rule.key}"


def _credential(folder: str, name: str) -> str | None:
    """Raises SettingsError."""
    try:
        return Path(folder, name).read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(name, None, f"the credential {folder}/{name} cannot be read: {error}") from error


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii")
