"""The options that make typed columns of keys and values, each checked; `horolog.pipeline.options.options` has all others.

Secrets are in `RegistryAccess` alone, which shows none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from horolog.client.decoding import registry_access
from horolog.client.decoding.registry_access import RegistryAccess, RegistryUrlError
from horolog.pipeline.base.positions import OptionError

PARTS = ("key", "value")
FORMATS = ("json", "avro", "protobuf", "msgpack", "string")
BY_SCHEMA = ("avro", "protobuf")
MODES = ("permissive", "dropmalformed", "failfast")
TIME_UNITS = ("auto", "s", "ms", "us", "ns")
DEAD_LETTERS = "dead.letter.topic"
TIME_FIELD = "timestamp.field"
TIME_UNIT = "timestamp.unit"
RAW = "includeRaw"
_OF_PART = ("format", "schema", "message", "subject", "version")
USER, PASSWORD = "registry.user", "registry.password"
"""Names that every Spark hides the values of, other than `user.info`."""
_REGISTRY = (
    *registry_access.URL,
    *registry_access.USER_INFO,
    *registry_access.TOKEN,
    *registry_access.CA_FILE,
)
_ALONE = ("mode", DEAD_LETTERS, TIME_FIELD, TIME_UNIT, RAW)
NAMES = frozenset({*(f"{part}.{name}" for part in PARTS for name in _OF_PART), *_REGISTRY, USER, PASSWORD, *_ALONE})


@dataclass(frozen=True, slots=True)
class PartOptions:
    """How keys or values are read."""

    part: str
    format: str
    schema: str | None = field(default=None, repr=False)
    """A file, or the text itself."""
    message: str | None = None
    subject: str | None = None
    version: str = "latest"


@dataclass(frozen=True, slots=True)
class TypedOptions:
    """How the bytes of records are decoded."""

    key: PartOptions | None
    value: PartOptions | None
    registry: RegistryAccess | None
    mode: str
    dead_letters: str | None
    time_field: str | None
    time_unit: str
    keeps_raw: bool = False
    """Decoded columns are added to the bytes instead of replacing them."""


def without_part(options: Mapping[str, str], part: str) -> dict[str, str]:
    """The options with which this part's bytes are left as they are; without any that says something of types, if none is left to decode."""
    gone = {f"{part}.{name}" for name in _OF_PART} | ({TIME_FIELD, TIME_UNIT} if part == "value" else set())
    left = {name: value for name, value in options.items() if name.lower() not in gone}
    if any(name.lower() in {f"{each}.format" for each in PARTS} for name in left):
        return left
    return {name: value for name, value in left.items() if name.lower() not in NAMES}


Text = Callable[[str], str | None]
"""The option of a name, if it is given."""


def parse_typed(text: Text) -> TypedOptions | None:
    """None if no option asks for types. Raises OptionError."""
    parts = {part: _part(text, part) for part in PARTS}
    if not any(parts.values()):
        for name in sorted(NAMES):
            if text(name) is not None:
                raise OptionError(f"{name} needs value.format or key.format ({', '.join(FORMATS)})")
        return None
    registry = _registry(text)
    for part in filter(None, parts.values()):
        _check_schema(part, has_registry=registry is not None)
    mode, dead_letters = _mode(text)
    time_field = text(TIME_FIELD)
    if time_field is not None and (parts["value"] is None or parts["value"].format == "string"):
        raise OptionError(f"{TIME_FIELD} is a field of the value, and value.format has no fields")
    if text(TIME_UNIT) is not None and time_field is None:
        raise OptionError(f"{TIME_UNIT} needs {TIME_FIELD}")
    unit = _choice(text, TIME_UNIT, "auto", TIME_UNITS)
    keeps_raw = _choice(text, RAW, "false", ("true", "false")) == "true"
    return TypedOptions(parts["key"], parts["value"], registry, mode, dead_letters, time_field, unit, keeps_raw)


def _part(text: Text, part: str) -> PartOptions | None:
    if text(f"{part}.format") is None:
        for name in _OF_PART:
            if text(f"{part}.{name}") is not None:
                raise OptionError(f"{part}.{name} needs {part}.format ({', '.join(FORMATS)})")
        return None
    version = text(f"{part}.version") or "latest"
    if version != "latest" and not (version.isascii() and version.isdigit() and int(version) > 0):
        raise OptionError(f"{part}.version: {version!r} is neither a version number nor latest")
    return PartOptions(
        part,
        _choice(text, f"{part}.format", "", FORMATS),
        text(f"{part}.schema"),
        text(f"{part}.message"),
        text(f"{part}.subject"),
        version,
    )


def _check_schema(part: PartOptions, *, has_registry: bool) -> None:
    """Whether what says the columns fits the format."""
    name = part.part
    if part.format == "string" and part.schema is not None:
        raise OptionError(f"{name}.schema does not apply to the format string, which is one column")
    if part.format in {"json", "msgpack"} and part.schema is None:
        raise OptionError(f"{name}.schema must define the columns of {part.format}: id BIGINT, name STRING")
    if part.format in BY_SCHEMA and part.schema is None and not has_registry:
        raise OptionError(f"{part.format} needs {name}.schema (a file, or the text), or a registry")
    if part.message is not None and part.format != "protobuf":
        raise OptionError(f"{name}.message is only for protobuf")
    if part.subject is not None and (part.schema is not None or part.format not in BY_SCHEMA):
        raise OptionError(
            f"{name}.subject is only for a schema of a registry, but {name}.schema or the format has set the schema already"
        )


def _mode(text: Text) -> tuple[str, str | None]:
    """How broken records are treated: with a topic for them they are dropped from the rows, except in the mode permissive."""
    dead_letters = text(DEAD_LETTERS)
    if dead_letters is not None and not dead_letters.strip():
        raise OptionError(f"{DEAD_LETTERS}: {dead_letters!r} is not a name of a topic")
    mode = _choice(text, "mode", "permissive" if dead_letters is None else "dropmalformed", MODES)
    if mode == "failfast" and dead_letters is not None:
        raise OptionError(
            f"mode failfast ends at the first broken record, but {DEAD_LETTERS} collects them: give only one of them"
        )
    return mode, dead_letters


def _choice(text: Text, name: str, default: str, choices: tuple[str, ...]) -> str:
    word = (text(name) or default).strip().lower()
    if word not in choices:
        raise OptionError(f"{name}: {text(name)!r} is not one of {', '.join(choices)}")
    return word


def _registry(text: Text) -> RegistryAccess | None:
    given = {name: found for name in _REGISTRY if (found := text(name)) is not None} | _login(text)
    if not given:
        return None
    try:
        access = RegistryAccess.of(given)
    except RegistryUrlError as error:
        raise OptionError(f"{registry_access.URL[1]}: {error}") from error
    if access is None:
        raise OptionError(f"{min(given)} needs {registry_access.URL[1]}, the address")
    if access.has_login_in_url:
        raise OptionError(
            f"{registry_access.URL[1]}: Spark shows addresses, so put the password elsewhere: use {USER} and {PASSWORD}"
        )
    return access


def _login(text: Text) -> dict[str, str]:
    user, password = text(USER), text(PASSWORD)
    if (user is None) != (password is None):
        raise OptionError(f"{USER} needs {PASSWORD}, and {PASSWORD} needs {USER}: give both")
    if user is None:
        return {}
    if ":" in user:
        raise OptionError(f"{USER}: a user name cannot have a colon")
    if any(text(name) is not None for name in registry_access.USER_INFO):
        raise OptionError(f"{USER} and {registry_access.USER_INFO[0]} are both given; give only one of them")
    return {registry_access.USER_INFO[0]: f"{user}:{password}"}
