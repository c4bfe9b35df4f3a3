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

    UNKNOWN_SERVER_ERROR = -1, "The server failed in a way that it did not foresee."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The offset lies outside of what the partition holds."
    CORRUPT_MESSAGE = (
        2,
        "A record fails its checksum, has an impossible size, or lacks the key a compacted topic asks for.",
        True,
    )
    UNKNOWN_TOPIC_OR_PARTITION = 3, "There is no such topic or partition here.", True
    INVALID_FETCH_SIZE = 4, "The number of bytes to fetch makes no sense."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment.", True
    NOT_LEADER_OR_FOLLOWER = 6, "This broker neither leads nor, where that would do, follows the partition.", True
    REQUEST_TIMED_OUT = 7, "The request was not done in time.", True
    BROKER_NOT_AVAILABLE = 8, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, "The replica cannot be reached.", True
    MESSAGE_TOO_LARGE = 10, "A message is larger than the broker or the topic accepts."
    STALE_CONTROLLER_EPOCH = 11, "Another broker has become controller since."
    OFFSET_METADATA_TOO_LARGE = 12, "The text that goes with the offset is too long."
    NETWORK_EXCEPTION = 13, "The connection ended before the answer came.", True
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still reading its state.", True
    COORDINATOR_NOT_AVAILABLE = 15, "There is no coordinator at the moment.", True
    NOT_COORDINATOR = 16, "Another broker coordinates this group or transaction.", True
    INVALID_TOPIC_EXCEPTION = 17, "The topic's name is not allowed, or the topic may not be used in this way."
    RECORD_LIST_TOO_LARGE = 18, "The batch is larger than a segment."
    NOT_ENOUGH_REPLICAS = 19, "Fewer replicas are in sync than the topic asks for; nothing was written.", True
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "It was written, but to fewer in-sync replicas than the topic asks for.",
        True,
    )
    INVALID_REQUIRED_ACKS = 21, "acks has to be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, "The generation is not the group's current one."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the group, or named none."
    INVALID_GROUP_ID = 24, "The group id is empty or not allowed."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside of what the broker allows."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing: join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The commit would not fit into one message."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not allowed to do this with the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not allowed to do this with the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not allowed to do this with the cluster."
    INVALID_TIMESTAMP = 32, "A record's timestamp is outside of what the topic accepts."
    TIMESTAMP_EXCEEDED_THRESHOLD = INVALID_TIMESTAMP  # the name that KIP-32 gave it
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request does not belong at this point of the SASL exchange."
    UNSUPPORTED_VERSION = 35, "The broker does not serve this version of the API."
    TOPIC_ALREADY_EXISTS = 36, "A topic of this name exists."
    INVALID_PARTITIONS = 37, "The number of partitions makes no sense."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of replicas makes no sense."
    INVALID_CONFIG = 40, "A setting's name or value is not accepted."
    NOT_CONTROLLER = 41, "Another broker is the controller.", True
    INVALID_REQUEST = 42, "The request contradicts itself or cannot be understood."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The format in which the messages are stored has no room for what was asked."
    POLICY_VIOLATION = 44, "A policy of the cluster forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The producer's sequence has a gap or went back."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer's batch was written before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is an old one."
    INVALID_TXN_STATE = 48, "The transaction's state does not allow this step."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id is not the one assigned to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is longer than the broker allows."
    CONCURRENT_TRANSACTIONS = 51, "An earlier step of this transaction is still under way.", True
    TRANSACTION_COORDINATOR_FENCED = 52, "The marker was sent by a coordinator that is no longer in charge."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not allowed to use this transactional id."
    SECURITY_DISABLED = 54, "The broker runs without authorisation."
    OPERATION_NOT_ATTEMPTED = 55, "Not tried, because another part of the same request failed."
    KAFKA_STORAGE_ERROR = 56, "The disk failed.", True
    LOG_DIR_NOT_FOUND = 57, "The broker has no such data folder."
    SASL_AUTHENTICATION_FAILED = 58, "The credentials were refused."
    UNKNOWN_PRODUCER_ID = 59, "The partition remembers nothing of this producer, whose records may have been removed."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal may neither own nor renew the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Delegation tokens cannot be asked for over this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not allowed to do this with the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "Principals of this type are not known."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no such fetch session.", True
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session is at another epoch.", True
    LISTENER_NOT_FOUND = 72, "The leader has no listener of the name that was used here.", True
    TOPIC_DELETION_DISABLED = 73, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, "The leader epoch of the request is older than the broker's.", True
    UNKNOWN_LEADER_EPOCH = 75, "The leader epoch of the request is newer than the broker's.", True
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The version of the request cannot carry this compression."
    STALE_BROKER_EPOCH = 77, "The broker has registered again since."
    OFFSET_NOT_AVAILABLE = 78, "A new leader does not know yet how far it may be read.", True
    MEMBER_ID_REQUIRED = 79, "Join again with the member id that comes with this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not there.", True
    GROUP_MAX_SIZE_REACHED = 81, "The group is full."
    FENCED_INSTANCE_ID = 82, "Another member has taken over this group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica can become leader.", True
    ELECTION_NOT_NEEDED = 84, "The partition needs no election.", True
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group reads the topic at the moment, so its offsets stay."
    INVALID_RECORD = 87, "A record breaks a rule of the broker or the topic."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction are still to be settled.", True
    THROTTLING_QUOTA_EXCEEDED = 89, "A quota is used up.", True
    PRODUCER_FENCED = 90, "A newer producer uses the same transactional id."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential is not good enough to be accepted."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the voters."
    INVALID_UPDATE_VERSION = 95, "The version to update to makes no sense."
    FEATURE_UPDATE_FAILED = 96, "The features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal of a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside of the snapshot."
    UNKNOWN_TOPIC_ID = 100, "There is no topic with this id here.", True
    DUPLICATE_BROKER_REGISTRATION = 101, "The broker id is taken."
    BROKER_ID_NOT_REGISTERED = 102, "No broker has registered with this id."
    INCONSISTENT_TOPIC_ID = 103, "The topic's id is another one.", True
    INCONSISTENT_CLUSTER_ID = 104, "The request was meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topics by name with topics by id.", True
    INELIGIBLE_REPLICA = 107, "A replica of the new in-sync set may not belong to it."
    NEW_LEADER_ELECTED = 108, "The partition's state was changed, and its leader with it."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset has moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The coordinator has fenced this member: give up all partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, "Another member still holds this instance id and has to leave first."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support the assignor, or not this version of it."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is an old one: try again with the one of the next heartbeat."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request went to an endpoint of the wrong kind."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "Endpoints of this kind are not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is not a current one."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The broker's registration was refused."
    TRANSACTION_ABORTABLE = 120, "The transaction failed; abort it and continue with the same transactional id."
    INVALID_RECORD_STATE = 121, "The record is not in a state in which it could be acknowledged."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session.", True
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session is at another epoch.", True
    FENCED_STATE_EPOCH = 124, "The state of the share group is at another epoch."
    INVALID_VOTER_KEY = 125, "The voter's key is not that of the replica that was asked."
    DUPLICATE_VOTER = 126, "The voter is one already."
    VOTER_NOT_FOUND = 127, "There is no such voter."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not one."
    REBOOTSTRAP_REQUIRED = (
        129,
        "What the client knows of the cluster is too old: start again from the bootstrap addresses.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, "The topology makes no sense."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The topology's epoch makes no sense."
    STREAMS_TOPOLOGY_FENCED = 132, "The topology's epoch is an old one."
    SHARE_SESSION_LIMIT_REACHED = 133, "The broker has as many share sessions as it allows.", True


OTHER_NAMES = {ErrorCode.INVALID_TIMESTAMP: "TimestampExceededThreshold"}
"""Other names under which people look for a code."""
