"""What people set: byte 0 picks the way in, the rest is a settings file, or lines NAME=TEXT of the environment, of flags or of a topic's configuration.

Whatever is in it, it is taken or refused by name, and a value that is taken is said the same when it is read again.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from horolog.base.properties_file import escape_value
from horolog.broker.config import topic_settings
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import SPECS, Settings, load
from tests.fuzz.targets import place

Texts = dict[str, str]
ALLOWED_BYTES_OF_A_REFUSAL = 4000
"""On top of the value that is refused, which is shown."""


def lines(data: bytes) -> Texts:
    pairs = (line.partition("=") for line in data.decode("utf-8", "replace").split("\n") if line)
    return {name: text for name, _, text in pairs}


def from_file(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        settings, _ = load(Path(file.name), {}, {})
    static = settings.layers.static
    again = "".join(f"{key}={escape_value(text)}\n" for key, text in static.items())
    with tempfile.NamedTemporaryFile() as file:
        file.write(again.encode())
        file.flush()
        assert load(Path(file.name), {}, {})[0] == settings, "settings change when they are written and read again"


def from_environment(data: bytes) -> None:
    told(load(None, lines(data), {})[0])


def from_flags(data: bytes) -> None:
    told(load(None, {}, lines(data))[0])


def while_running(data: bytes) -> None:
    given = lines(data)
    assert Settings().with_dynamic(given, {}).with_dynamic({}, {}) == Settings()


def of_a_topic(data: bytes) -> None:
    given = lines(data)
    topic_settings.resolve(given, Settings())
    topic_settings.describe(given, Settings())


def told(settings: Settings) -> None:
    """Everything that is taken can be shown."""
    assert settings.describe()


WAYS: tuple[Callable[[bytes], None], ...] = (from_file, from_environment, from_flags, while_running, of_a_topic)


def target(data: bytes) -> object:
    if not data:
        return None
    number = data[0] % len(WAYS)
    refused = refusal(WAYS[number], data[1:])
    if refused is None:
        return number, "taken"
    assert len(str(refused)) < len(data) * 4 + ALLOWED_BYTES_OF_A_REFUSAL, "a refusal is no flood"
    return number, place(refused), refused.key if refused.key in SPECS or refused.key in topic_settings.ROWS else ""


def refusal(way: Callable[[bytes], None], data: bytes) -> SettingsError | None:
    try:
        way(data)
    except SettingsError as error:
        return error
    return None
