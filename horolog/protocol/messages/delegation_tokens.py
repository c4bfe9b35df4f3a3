"""Create, Renew, Expire and DescribeDelegationToken: credentials that one user makes for programs that act for a user."""

from horolog.protocol.wire import Message, Struct, array, binary, field, int16, int32, int64, string


class TokenPrincipal(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class CreateDelegationTokenRequest(Message, versions="0-3", flexible="2+"):
    # null: the owner is the principal of the request
    owner_principal_type: str | None = field(string, "3+", nullable="3+")
    owner_principal_name: str | None = field(string, "3+", nullable="3+")
    renewers: list[TokenPrincipal] = field(array(TokenPrincipal))
    # -1: as the broker's settings say
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


class DescribeDelegationTokenRequest(Message, versions="0-3", flexible="2+"):
    # null: all tokens
    owners: list[TokenPrincipal] | None = field(array(TokenPrincipal), nullable="0+")


class DescribedDelegationToken(TokenPrincipal):
    token_requester_principal_type: str = field(string, "3+")
    token_requester_principal_name: str = field(string, "3+")
    issue_timestamp: int = field(int64)
    expiry_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(binary)
    renewers: list[TokenPrincipal] = field(array(TokenPrincipal))


class DescribeDelegationTokenResponse(Message, versions="0-3", flexible="2+"):
    error_code: int = field(int16)
    tokens: list[DescribedDelegationToken] = field(array(DescribedDelegationToken))
    throttle_time_ms: int = field(int32)
