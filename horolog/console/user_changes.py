"""Changes of SCRAM users: add one, change a password, remove one. The password is typed when the plan is confirmed."""

from typing import TYPE_CHECKING

from horolog.commands.online.access_words import DEFAULT_MECHANISM, LEAST_ITERATIONS, MECHANISMS, MOST_PASSWORD_BYTES
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin


async def putting(visit: Visit) -> Form:
    name, mechanism = visit.text("name"), visit.text("mechanism", DEFAULT_MECHANISM)
    password = visit.given.get("password", "")
    inputs = (
        Input("name", "User", name),
        Input("mechanism", "Mechanism", mechanism, choices=MECHANISMS),
        Input("password", "Password", "", is_secret=True),
    )

    async def plan() -> Plan:
        if not name:
            raise Refused("name: give the user a name", field="name")
        known = (await visit.admin.describe_users()).get(name, {})
        is_new = _known_mechanism(mechanism) not in known

        async def put(admin: "Admin") -> None:
            from horolog.broker.security.sasl import scram_keys
            from horolog.client.admin.admin_users import NewUser

            if not 0 < len(password.encode()) <= MOST_PASSWORD_BYTES:
                raise Refused(f"password: expected 1 to {MOST_PASSWORD_BYTES} bytes", field="password")
            salt = scram_keys.new_salt()
            salted = scram_keys.KINDS[mechanism].salted(password, salt, LEAST_ITERATIONS)
            await admin.put_users([NewUser(name, mechanism, LEAST_ITERATIONS, salt, salted)])

        does = f"adds a password of user {name}" if is_new else f"changes the password of user {name}"
        return Plan(
            (f"{does} for {mechanism}",),
            command_line(visit.cluster.bootstrap, "users", "add", name, "--mechanism", mechanism),
            put,
            visit.link("/access"),
            () if is_new else ("clients with the old password cannot log in again",),
            basis=f"{is_new}",
        )

    return Form("Add a user, or change a password", inputs, plan, "Save the password")


async def removal(visit: Visit) -> Form:
    name, mechanism = visit.text("name"), visit.text("mechanism", DEFAULT_MECHANISM)
    if _known_mechanism(mechanism) not in (await visit.admin.describe_users()).get(name, {}):
        raise Refused(f"there is no user {name!r} with a password for {mechanism}", 404)
    inputs = (
        Input("name", "User", name, is_fixed=True),
        Input("mechanism", "Mechanism", mechanism, is_fixed=True),
    )

    async def plan() -> Plan:
        async def remove(admin: "Admin") -> None:
            await admin.remove_users({name: mechanism})

        return Plan(
            (f"removes the password of user {name} for {mechanism}",),
            command_line(visit.cluster.bootstrap, "users", "remove", name, "--mechanism", mechanism),
            remove,
            visit.link("/access"),
            ("this user cannot log in again; its open connections stay",),
            confirm=name,
        )

    return Form("Remove a user", inputs, plan, "Remove the user")


def _known_mechanism(mechanism: str) -> str:
    if mechanism not in MECHANISMS:
        raise Refused(f"mechanism: choose {' or '.join(MECHANISMS)}", field="mechanism")
    return mechanism
