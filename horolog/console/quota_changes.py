"""Changes of quotas: set the rates of a user, a client id, both, or an address, and remove them."""

from typing import TYPE_CHECKING

from horolog.commands.errors import UsageError
from horolog.commands.online.access_words import BY_DEFAULT, QUOTA_KEYS, QUOTA_KINDS, known_quota, rate_of
from horolog.commands.online.setting_values import settings_of
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from horolog.client.admin.admin import Admin


async def setting(visit: Visit) -> Form:
    given = visit.given.get
    inputs = (
        *(
            Input(kind, kind.capitalize(), visit.text(kind), f"none; {BY_DEFAULT} for all others")
            for kind in QUOTA_KINDS
        ),
        Input("values", "Rates, one on each line", given("values", ""), "producer_byte_rate=10MiB", is_long=True),
    )

    async def plan() -> Plan:
        parts = _parts(visit)
        values = _values(given("values", ""))
        before = await _before(visit, parts)

        async def change(admin: "Admin", *, validate_only: bool = False) -> None:
            await _alter(admin, parts, values, validate_only=validate_only)

        await change(visit.admin, validate_only=True)
        words = ["quotas", "set", *(f"{key}={_number(value)}" for key, value in values.items())]
        return Plan(
            tuple(
                f"sets {key} of {_shown(parts)} to {_number(value)}, from {_number(before.get(key))}"
                for key, value in values.items()
            ),
            command_line(visit.cluster.bootstrap, *words, *_options(parts)),
            change,
            visit.link("/access"),
            basis=str(sorted(before.items())),
        )

    return Form("Set a quota", inputs, plan, "Set the quota", (f"Rates: {', '.join(QUOTA_KEYS)}.",))


async def removal(visit: Visit) -> Form:
    parts = _parts(visit)
    before = await _before(visit, parts)
    if not before:
        raise Refused(f"there is no quota for {_shown(parts)}", 404)
    inputs = tuple(Input(kind, kind.capitalize(), name or BY_DEFAULT, is_fixed=True) for kind, name in parts.items())

    async def plan() -> Plan:
        async def remove(admin: "Admin", *, validate_only: bool = False) -> None:
            await _alter(admin, parts, dict.fromkeys(before), validate_only=validate_only)

        await remove(visit.admin, validate_only=True)
        return Plan(
            tuple(f"removes {key} of {_shown(parts)}: {_number(value)}" for key, value in sorted(before.items())),
            command_line(visit.cluster.bootstrap, "quotas", "remove", *_options(parts)),
            remove,
            visit.link("/access"),
            ("a wider quota applies from then on, or none",),
            basis=str(sorted(before.items())),
        )

    return Form("Remove a quota", inputs, plan, "Remove the quota")


def _parts(visit: Visit) -> dict[str, str | None]:
    """The kinds and names of the form; None stands for the default."""
    texts = {kind: text for kind in QUOTA_KINDS if (text := visit.text(kind))}
    if not texts:
        raise Refused("user: name a user, a client id or an address", field=QUOTA_KINDS[0])
    if "ip" in texts and len(texts) > 1:
        raise Refused("ip: a quota of an address has no other part", field="ip")
    return {kind: None if text == BY_DEFAULT else text for kind, text in texts.items()}


def _values(text: str) -> dict[str, float]:
    try:
        texts = settings_of([line.strip() for line in text.splitlines() if line.strip()])
        values = {known_quota(key): rate_of(key, value) for key, value in texts.items()}
    except UsageError as error:
        raise Refused(f"values: {error}", field="values") from error
    if not values:
        raise Refused("values: expected at least one rate", field="values")
    return values


async def _before(visit: Visit, parts: "Mapping[str, str | None]") -> dict[str, float]:
    quotas = await visit.admin.describe_quotas(parts, strict=True)
    return {key: value for one in quotas for key, value in one.values.items()}


async def _alter(
    admin: "Admin", parts: "Mapping[str, str | None]", values: "Mapping[str, float | None]", *, validate_only: bool
) -> None:
    from horolog.client.admin.admin_quotas import entity_of

    await admin.alter_quotas({entity_of(parts): values}, validate_only=validate_only)


def _options(parts: "Mapping[str, str | None]") -> list[str]:
    return [
        word for kind, name in parts.items() for word in (("--default", kind) if name is None else (f"--{kind}", name))
    ]


def _shown(parts: "Mapping[str, str | None]") -> str:
    return ", ".join(f"{kind} {BY_DEFAULT if name is None else name}" for kind, name in parts.items())


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.17g}"
