"""Changes of access rules: add one, remove one, in the words of the command line."""

from typing import TYPE_CHECKING

from horolog.base.acl_types import Operation, PatternType
from horolog.base.acls import Acl, AclFilter
from horolog.commands.errors import UsageError
from horolog.commands.online.access_words import RESOURCES, acl_of_words, resource_text
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin

ALLOW, DENY = "allow", "deny"
OPERATIONS = tuple(one.name.lower().replace("_", "-") for one in Operation if one > Operation.ANY)
FIELDS = ("principal", "permission", "operation", "resource", "host")


def words_of(acl: Acl) -> dict[str, str]:
    """A rule as the fields of a form, and of an address."""
    operation = acl.operation.name.lower().replace("_", "-")
    words = (acl.principal, acl.permission.name.lower(), operation, resource_text(acl), acl.host)
    return dict(zip(FIELDS, words, strict=True))


async def adding(visit: Visit) -> Form:
    inputs = (
        Input("principal", "Principal", visit.text("principal"), "alice; * for all users"),
        Input("permission", "Permission", visit.text("permission", ALLOW), choices=(ALLOW, DENY)),
        Input("operation", "Operation", visit.text("operation", "read"), choices=OPERATIONS),
        Input("resource", "Resource", visit.text("resource"), "topic:orders"),
        Input("host", "Address of the client", visit.text("host", "*"), "*"),
    )

    async def plan() -> Plan:
        acl = _acl_of(visit)
        alike = AclFilter(acl.resource_type, acl.name, PatternType.MATCH)
        about = await visit.admin.describe_acls(alike)

        async def add(admin: "Admin") -> None:
            await admin.create_acls([acl])

        if acl in about:
            raise Refused("resource: this rule exists already", 409, "resource")
        return Plan(
            (f"adds the rule: {acl}",),
            command_line(visit.cluster.bootstrap, "acls", "add", *_words(acl)),
            add,
            visit.link("/access"),
            _warnings(acl, is_first=not about),
            basis=str(len(about)),
        )

    return Form("Add an access rule", inputs, plan, "Add the rule", (f"Resources: {RESOURCES}.",))


async def removal(visit: Visit) -> Form:
    inputs = tuple(Input(name, name.capitalize(), visit.text(name), is_fixed=True) for name in FIELDS)
    acl = _acl_of(visit)
    if acl not in await visit.admin.describe_acls(AclFilter(*acl)):
        raise Refused(f"there is no such rule: {acl}", 404)

    async def plan() -> Plan:
        async def remove(admin: "Admin") -> None:
            await admin.delete_acls([AclFilter(*acl)])

        words = words_of(acl)
        denies = words["permission"] == DENY
        warning = (
            "clients that it denies may be allowed" if denies else "clients that only this rule allows are refused"
        )
        return Plan(
            (f"removes the rule: {acl}",),
            command_line(visit.cluster.bootstrap, "acls", "remove", *_words(acl)),
            remove,
            visit.link("/access"),
            (warning,),
            confirm=acl.principal,
        )

    return Form("Remove an access rule", inputs, plan, "Remove the rule")


def _acl_of(visit: Visit) -> Acl:
    principal, permission, operation, resource, host = (visit.text(name) for name in FIELDS)
    if not principal:
        raise Refused("principal: expected a user, or * for all", field="principal")
    try:
        return acl_of_words(principal, operation, resource, host or "*", deny=permission == DENY)
    except UsageError as error:
        field = "operation" if "operation" in str(error) else "resource"
        raise Refused(f"{field}: {error}", field=field) from error


def _words(acl: Acl) -> list[str]:
    words = words_of(acl)
    host = ["--host", acl.host] if acl.host != "*" else []
    deny = ["--deny"] if words["permission"] == DENY else []
    return [acl.principal, words["operation"], words["resource"], *host, *deny]


def _warnings(acl: Acl, *, is_first: bool) -> tuple[str, ...]:
    if words_of(acl)["permission"] == DENY:
        return ("it overrides all rules that allow the same",)
    if is_first:
        return (f"it is the first rule about {resource_text(acl)}: all others then need one of their own",)
    return ()
