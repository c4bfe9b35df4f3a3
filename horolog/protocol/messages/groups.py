"""The classic group protocol: finding the coordinator, joining, syncing, heartbeats, leaving, and looking at groups."""

from horolog.protocol.wire import Message, Struct, array, binary, boolean, field, int8, int16, int32, string


class FindCoordinatorRequest(Message, versions="0-6", flexible="3+"):
    """v0 finds groups only, v1 also transactions, v4 asks for many keys at once."""

    key: str = field(string, "0-3")
    # 0 group, 1 transaction, 2 share partition
    key_type: int = field(int8, "1+")
    coordinator_keys: list[str] = field(array(string), "4+")


class Coordinator(Struct):
    key: str = field(string)
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class FindCoordinatorResponse(Message, versions="0-6", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16, "0-3")
    error_message: str | None = field(string, "1-3", nullable="0+", ignorable=True)
    node_id: int = field(int32, "0-3")
    host: str = field(string, "0-3")
    port: int = field(int32, "0-3")
    coordinators: list[Coordinator] = field(array(Coordinator), "4+")


class JoinGroupRequestProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(binary)


class JoinGroupRequest(Message, versions="0-9", flexible="6+"):
    """From v4 on a member without an id is sent away with one (MEMBER_ID_REQUIRED) and joins again."""

    group_id: str = field(string)
    session_timeout_ms: int = field(int32)
    # v0 uses the session timeout for both
    rebalance_timeout_ms: int = field(int32, "1+", default=-1, ignorable=True)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="0+")
    protocol_type: str = field(string)
    protocols: list[JoinGroupRequestProtocol] = field(array(JoinGroupRequestProtocol))
    reason: str | None = field(string, "8+", nullable="0+", ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "5+", nullable="0+", ignorable=True)
    metadata: bytes = field(binary)


class JoinGroupResponse(Message, versions="0-9", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+", ignorable=True)
    error_code: int = field(int16)
    generation_id: int = field(int32, default=-1)
    protocol_type: str | None = field(string, "7+", nullable="0+", ignorable=True)
    # null while there is none
    protocol_name: str | None = field(string, nullable="7+")
    leader: str = field(string)
    skip_assignment: bool = field(boolean, "9+")
    member_id: str = field(string)
    # only for the leader
    members: list[JoinGroupResponseMember] = field(array(JoinGroupResponseMember))


class SyncGroupRequestAssignment(Struct):
    member_id: str = field(string)
    assignment: bytes = field(binary)


class SyncGroupRequest(Message, versions="0-5", flexible="4+"):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="0+")
    protocol_type: str | None = field(string, "5+", nullable="0+", ignorable=True)
    protocol_name: str | None = field(string, "5+", nullable="0+", ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(array(SyncGroupRequestAssignment))


class SyncGroupResponse(Message, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16)
    protocol_type: str | None = field(string, "5+", nullable="0+", ignorable=True)
    protocol_name: str | None = field(string, "5+", nullable="0+", ignorable=True)
    assignment: bytes = field(binary)


class HeartbeatRequest(Message, versions="0-4", flexible="4+"):
    group_id: str = field(string)
    generation_id: int = field(int32)
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="0+")


class HeartbeatResponse(Message, versions="0-4", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16)


class MemberIdentity(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable="0+")
    reason: str | None = field(string, "5+", nullable="0+", ignorable=True)


class LeaveGroupRequest(Message, versions="0-5", flexible="4+"):
    """Up to v2 one member leaves, from v3 on any number."""

    group_id: str = field(string)
    member_id: str = field(string, "0-2")
    members: list[MemberIdentity] = field(array(MemberIdentity), "3+")


class MemberResponse(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, nullable="0+")
    error_code: int = field(int16)


class LeaveGroupResponse(Message, versions="0-5", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16)
    members: list[MemberResponse] = field(array(MemberResponse), "3+")


class DescribeGroupsRequest(Message, versions="0-6", flexible="5+"):
    groups: list[str] = field(array(string))
    include_authorized_operations: bool = field(boolean, "3+")


class DescribedGroupMember(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "4+", nullable="0+", ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    member_metadata: bytes = field(binary)
    member_assignment: bytes = field(binary)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, "6+", nullable="0+")
    group_id: str = field(string)
    group_state: str = field(string)
    protocol_type: str = field(string)
    protocol_data: str = field(string)
    members: list[DescribedGroupMember] = field(array(DescribedGroupMember))
    authorized_operations: int = field(int32, "3+", default=-2147483648)


class DescribeGroupsResponse(Message, versions="0-6", flexible="5+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    groups: list[DescribedGroup] = field(array(DescribedGroup))


class ListGroupsRequest(Message, versions="0-5", flexible="3+"):
    states_filter: list[str] = field(array(string), "4+")
    types_filter: list[str] = field(array(string), "5+")


class ListedGroup(Struct):
    group_id: str = field(string)
    protocol_type: str = field(string)
    group_state: str = field(string, "4+", ignorable=True)
    group_type: str = field(string, "5+", ignorable=True)


class ListGroupsResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16)
    groups: list[ListedGroup] = field(array(ListedGroup))


class DeleteGroupsRequest(Message, versions="0-2", flexible="2+"):
    groups_names: list[str] = field(array(string))


class DeletableGroupResult(Struct):
    group_id: str = field(string)
    error_code: int = field(int16)


class DeleteGroupsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: list[DeletableGroupResult] = field(array(DeletableGroupResult))
