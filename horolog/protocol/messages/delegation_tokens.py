"""Delegation tokens: made, renewed, expired and listed."""

from horolog.protocol.wire import Message, Struct, array, binary, field, int16, int32, int64, string


class CreatableRenewers(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class CreateDelegationTokenRequest(Message, versions="0-3", flexible="2+"):
    owner_principal_type: str | None = field(string, "3+", nullable="0+")
    owner_principal_name: str | None = field(string, "3+", nullable="0+")
    renewers: list[CreatableRenewers] = field(array(CreatableRenewers))
    max_lifetime_ms: int = field(int64)


class CreateDelegationTokenResponse(Message, versions="0-3", flexible="2+"):
    error_code: int = field(int16)
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, "3+")
    token_requester_principal_name: str = field(string, "3+")
    issue_timestamp_ms: int = field(int64)
    expiry_timestamp_ms: int = field(int64)
    max_timestamp_ms: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(binary)
    throttle_time_ms: int = field(int32)


class RenewDelegationTokenRequest(Message, versions="0-2", flexible="2+"):
    hmac: bytes = field(binary)
    renew_period_ms: int = field(int64)


class RenewDelegationTokenResponse(Message, versions="0-2", flexible="2+"):
    error_code: int = field(int16)
    expiry_timestamp_ms: int = field(int64)
    throttle_time_ms: int = field(int32)


class ExpireDelegationTokenRequest(Message, versions="0-2", flexible="2+"):
    hmac: bytes = field(binary)
    expiry_time_period_ms: int = field(int64)


class ExpireDelegationTokenResponse(Message, versions="0-2", flexible="2+"):
    error_code: int = field(int16)
    expiry_timestamp_ms: int = field(int64)
    throttle_time_ms: int = field(int32)


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribeDelegationTokenRequest(Message, versions="0-3", flexible="2+"):
    owners: list[DescribeDelegationTokenOwner] | None = field(array(DescribeDelegationTokenOwner), nullable="0+")


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribedDelegationToken(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, "3+")
    token_requester_principal_name: str = field(string, "3+")
    issue_timestamp: int = field(int64)
    expiry_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(binary)
    renewers: list[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer))


class DescribeDelegationTokenResponse(Message, versions="0-3", flexible="2+"):
    error_code: int = field(int16)
    tokens: list[DescribedDelegationToken] = field(array(DescribedDelegationToken))
    throttle_time_ms: int = field(int32)
