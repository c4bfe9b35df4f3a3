"""The classic group protocol on the wire, and the administration of groups.

JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5, ListGroups 0-5, DescribeGroups 0-6, DeleteGroups 0-2. `broker.groups`
does the work; this module handles the differences between versions.

- JoinGroup up to v6 has no null for the protocol's name; LeaveGroup up to v2 is about one member, whose error is the request's.
- SyncGroup v5+ names the protocol's type and name: without either it is INCONSISTENT_GROUP_PROTOCOL, whatever else is wrong.
- DescribeGroups shows protocol and assignments of a stable group only, and an unknown group as Dead (v6+: GROUP_ID_NOT_FOUND).
"""

from __future__ import annotations

from collections.abc import Generator

from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.classic_group import ClassicGroup, GroupState
from horolog.broker.groups.registry import Group
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

LAST_JOIN_WITHOUT_NULL = 6
LAST_LEAVE_OF_ONE = 2
FIRST_DESCRIBE_WITH_NOT_FOUND = 6
FIRST_SYNC_WITH_PROTOCOL = 5
DEAD = GroupState.DEAD.value

GROUPS_AT_ONCE = 500
"""Groups that are listed in one step."""


def client_of(context: RequestContext) -> Client:
    """The client's id, its address as real brokers write it, and its principal."""
    return Client(context.client_id or "", f"/{context.connection.peer_host}", context.principal)


def join(broker: BrokerView, request: JoinGroupRequest, context: RequestContext) -> None:
    def answer(response: JoinGroupResponse) -> None:
        if response.protocol_name is None and context.version <= LAST_JOIN_WITHOUT_NULL:
            response.protocol_name = ""
        context.reply(response)

    broker.groups.join(request, context.version, client_of(context), answer)


def sync(broker: BrokerView, request: SyncGroupRequest, context: RequestContext) -> None:
    if context.version >= FIRST_SYNC_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        context.reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    broker.groups.sync(request, context.reply, context.principal)


def heartbeat(broker: BrokerView, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:  # noqa: ARG001
    return HeartbeatResponse(error_code=broker.groups.heartbeat(request))


def leave(broker: BrokerView, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    code, left = broker.groups.leave(request, context.version)
    if context.version <= LAST_LEAVE_OF_ONE:
        return LeaveGroupResponse(error_code=code or left[0][1])
    members = [
        MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=each)
        for one, each in left
    ]
    return LeaveGroupResponse(error_code=code, members=members)


# -- administration


def list_groups(
    broker: BrokerView,
    request: ListGroupsRequest,
    context: RequestContext,  # noqa: ARG001
) -> Generator[None, None, ListGroupsResponse]:
    if broker.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=[])
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed: list[ListedGroup] = []
    for number, group in enumerate(broker.groups.groups()):
        if (not states or group.state_name.lower() in states) and (not types or group.type_name in types):
            listed.append(_listed(group))
        if number % GROUPS_AT_ONCE == GROUPS_AT_ONCE - 1:
            yield
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=listed)


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.type_name,
    )


def describe(broker: BrokerView, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(
        groups=[_describe(broker, group_id, context.version, operations) for group_id in request.groups]
    )


def _describe(broker: BrokerView, group_id: str, version: int, operations: int) -> DescribedGroup:
    group = broker.groups.find(group_id)
    if isinstance(group, ClassicGroup):
        return _described(group, operations)
    code, message = ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found."
    if isinstance(group, ErrorCode):
        code = group
    else:
        message = f"Group {group_id} is not a classic group."
    is_told = code != ErrorCode.GROUP_ID_NOT_FOUND or version >= FIRST_DESCRIBE_WITH_NOT_FOUND
    return DescribedGroup(
        error_code=code if is_told else ErrorCode.NONE,
        error_message=message if version >= FIRST_DESCRIBE_WITH_NOT_FOUND else None,
        group_id=group_id,
        group_state=DEAD if code == ErrorCode.GROUP_ID_NOT_FOUND else "",
        authorized_operations=NOT_ASKED if is_told else operations,
    )


def _described(group: ClassicGroup, operations: int) -> DescribedGroup:
    is_stable = group.state is GroupState.STABLE
    members = [
        DescribedGroupMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
            member_assignment=member.assignment if is_stable else b"",
        )
        for member in group.members.values()
    ]
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=members,
        authorized_operations=operations,
    )


def delete(broker: BrokerView, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse | None:
    group_ids = list(dict.fromkeys(request.groups_names))
    results = {group_id: DeletableGroupResult(group_id=group_id) for group_id in group_ids}
    response = DeleteGroupsResponse(results=list(results.values()))
    waiting = set(group_ids)

    def deleted(group_id: str, code: ErrorCode) -> None:
        results[group_id].error_code = code
        waiting.discard(group_id)
        if not waiting:
            context.reply(response)

    for group_id in group_ids:
        broker.groups.delete_group(group_id, lambda code, group_id=group_id: deleted(group_id, code))  # type: ignore[misc]
    return None if group_ids else response
