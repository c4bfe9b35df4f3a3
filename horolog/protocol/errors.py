"""Kafka's error codes, and the exceptions that this package raises about bytes."""

from enum import IntEnum
from typing import Self


class ProtocolError(Exception):
    """Anything that keeps bytes from being a message or a message from being bytes."""


class DecodeError(ProtocolError):
    """Bytes from a peer that are not as they claim: the peer's fault."""


class EncodeError(ProtocolError):
    """The message holds what this version of it cannot express: our own fault."""


class FrameError(ProtocolError):
    """The stream can no longer be cut into frames; the text is fit for the log line that says why it was closed."""

    def __init__(self, reason: str, frames: list[memoryview] | None = None) -> None:
        super().__init__(reason)
        self.frames = frames or []  # those that were whole before


class ErrorCode(IntEnum):
    """An error code on the wire; `message` is its text for people, and `retriable` says whether clients may retry."""

    message: str
    retriable: bool

    def __new__(cls, value: int, message: str, retriable: bool = False) -> Self:
        code = int.__new__(cls, value)
        code._value_ = value
        code.message = message
        code.retriable = retriable
        return code

    UNKNOWN_SERVER_ERROR = -1, "The broker met an unexpected error; its log has the details."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The offset is outside the range of the partition."
    CORRUPT_MESSAGE = (
        2,
        "A record has a wrong checksum, an invalid size, or, in a compacted topic, no key.",
        True,
    )
    UNKNOWN_TOPIC_OR_PARTITION = 3, "There is no such topic or partition here.", True
    INVALID_FETCH_SIZE = 4, "The number of bytes to fetch is invalid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment.", True
    NOT_LEADER_OR_FOLLOWER = 6, "This broker neither leads the partition nor has a replica to serve.", True
    REQUEST_TIMED_OUT = 7, "The request timed out.", True
    BROKER_NOT_AVAILABLE = 8, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, "The replica cannot be reached.", True
    MESSAGE_TOO_LARGE = 10, "A message is larger than the broker or the topic accepts."
    STALE_CONTROLLER_EPOCH = 11, "The controller epoch is out of date: another broker has become the controller."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata of the committed offset is too long."
    NETWORK_EXCEPTION = 13, "The connection was closed before the response arrived.", True
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still reading its state.", True
    COORDINATOR_NOT_AVAILABLE = 15, "There is no coordinator at the moment.", True
    NOT_COORDINATOR = 16, "Another broker coordinates this group or transaction.", True
    INVALID_TOPIC_EXCEPTION = 17, "The topic's name is not allowed, or the topic may not be used in this way."
    RECORD_LIST_TOO_LARGE = 18, "The batch is larger than a segment."
    NOT_ENOUGH_REPLICAS = 19, "Fewer replicas are in sync than the topic requires; nothing was written.", True
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "The records were written, but to fewer in-sync replicas than the topic requires.",
        True,
    )
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, "The generation is not the group's current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the group, or named none."
    INVALID_GROUP_ID = 24, "The group id is empty or not allowed."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside the limits of the broker."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing: join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The commit would not fit into one message."
    TOPIC_AUTHORIZATION_FAILED = 29, "Access to the topic is denied."
    GROUP_AUTHORIZATION_FAILED = 30, "Access to the group is denied."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Access to the cluster is denied."
    INVALID_TIMESTAMP = 32, "A record's timestamp is outside the range that the topic accepts."
    TIMESTAMP_EXCEEDED_THRESHOLD = INVALID_TIMESTAMP  # the name that KIP-32 gave it
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request is not allowed in this state of the SASL handshake."
    UNSUPPORTED_VERSION = 35, "The broker does not serve this version of the API."
    TOPIC_ALREADY_EXISTS = 36, "A topic with this name already exists."
    INVALID_PARTITIONS = 37, "The number of partitions is invalid."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of replicas is invalid."
    INVALID_CONFIG = 40, "A setting's name or value is not accepted."
    NOT_CONTROLLER = 41, "Another broker is the controller.", True
    INVALID_REQUEST = 42, "The request contradicts itself or cannot be understood."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The message format of the stored records does not support the request."
    POLICY_VIOLATION = 44, "A policy of the cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The sequence number of the batch does not follow the producer's last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The batch has already been written."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is out of date."
    INVALID_TXN_STATE = 48, "The transaction's state does not allow this step."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id is not the one assigned to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is longer than the broker allows."
    CONCURRENT_TRANSACTIONS = 51, "An earlier step of this transaction is still under way.", True
    TRANSACTION_COORDINATOR_FENCED = 52, "The marker comes from a coordinator that has been replaced."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Access to the transactional id is denied."
    SECURITY_DISABLED = 54, "The broker has no authorizer."
    OPERATION_NOT_ATTEMPTED = 55, "Not tried, because another part of the same request failed."
    KAFKA_STORAGE_ERROR = 56, "A disk of the broker failed.", True
    LOG_DIR_NOT_FOUND = 57, "The broker has no such data folder."
    SASL_AUTHENTICATION_FAILED = 58, "The credentials were refused."
    UNKNOWN_PRODUCER_ID = 59, "The partition does not know this producer: its records may have been deleted."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal may neither own nor renew the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Delegation tokens cannot be requested over this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Access to the delegation token is denied."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "Principals of this type are not known."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no such fetch session.", True
    INVALID_FETCH_SESSION_EPOCH = 71, "The epoch of the fetch session does not match.", True
    LISTENER_NOT_FOUND = 72, "The leader has no listener of the name that was used here.", True
    TOPIC_DELETION_DISABLED = 73, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, "The leader epoch of the request is older than the broker's.", True
    UNKNOWN_LEADER_EPOCH = 75, "The leader epoch of the request is newer than the broker's.", True
    UNSUPPORTED_COMPRESSION_TYPE = 76, "This version of the request does not support the compression codec."
    STALE_BROKER_EPOCH = 77, "The broker epoch is out of date: the broker has registered again."
    OFFSET_NOT_AVAILABLE = 78, "The leader is new and does not know yet up to which offset consumers may read.", True
    MEMBER_ID_REQUIRED = 79, "Join again with the member id in this response."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available.", True
    GROUP_MAX_SIZE_REACHED = 81, "The group is full."
    FENCED_INSTANCE_ID = 82, "Another member has taken over this group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica can become leader.", True
    ELECTION_NOT_NEEDED = 84, "The partition needs no election.", True
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group is subscribed to the topic, so its offsets cannot be deleted."
    INVALID_RECORD = 87, "The broker or the topic does not accept a record."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets are pending in an open transaction.", True
    THROTTLING_QUOTA_EXCEEDED = 89, "A quota is exceeded.", True
    PRODUCER_FENCED = 90, "A newer producer uses the same transactional id."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the voters."
    INVALID_UPDATE_VERSION = 95, "The feature version to update to is invalid."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal of a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position is outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "There is no topic with this id here.", True
    DUPLICATE_BROKER_REGISTRATION = 101, "The broker id is taken."
    BROKER_ID_NOT_REGISTERED = 102, "No broker has registered with this id."
    INCONSISTENT_TOPIC_ID = 103, "The topic has a different id.", True
    INCONSISTENT_CLUSTER_ID = 104, "The request was meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topics by name with topics by id.", True
    INELIGIBLE_REPLICA = 107, "A replica is not eligible for the in-sync set."
    NEW_LEADER_ELECTED = 108, "The partition has a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset has moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The coordinator has fenced this member: give up all partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, "Another member still holds this instance id and has to leave first."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support the assignor, or not this version of it."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is out of date: try again with the epoch of the next heartbeat."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request went to an endpoint of the wrong kind."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "Endpoints of this kind are not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is out of date."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The broker's registration was refused."
    TRANSACTION_ABORTABLE = 120, "The transaction failed; abort it and continue with the same transactional id."
    INVALID_RECORD_STATE = 121, "The state of the record does not allow the acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session.", True
    INVALID_SHARE_SESSION_EPOCH = 123, "The epoch of the share session does not match.", True
    FENCED_STATE_EPOCH = 124, "The state epoch of the share group does not match."
    INVALID_VOTER_KEY = 125, "The voter's key does not match the replica that received the request."
    DUPLICATE_VOTER = 126, "The voter is already in the set."
    VOTER_NOT_FOUND = 127, "There is no such voter."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = (
        129,
        "The client's metadata is too old: connect to the bootstrap addresses again.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, "The topology is invalid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The epoch of the topology is invalid."
    STREAMS_TOPOLOGY_FENCED = 132, "The epoch of the topology is out of date."
    SHARE_SESSION_LIMIT_REACHED = 133, "The maximum number of share sessions is reached.", True


OTHER_NAMES = {ErrorCode.INVALID_TIMESTAMP: "TimestampExceededThreshold"}
"""Other names under which people look for a code."""
