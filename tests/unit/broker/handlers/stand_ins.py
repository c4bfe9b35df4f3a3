"""A light broker for handlers: a real cluster over stand-ins of the log, and requests that go through the wire format."""

from __future__ import annotations

from types import GeneratorType, SimpleNamespace

from horolog.base.clock import ManualClock
from horolog.broker.cluster.hand_over import HandOvers
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.peers import NO_PEERS
from horolog.broker.cluster.placement import Placement
from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.partition_rows import LARGE, PartitionRows
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, decoder_of, encode, encoder_of
from tests.support.request_contexts import request_context
from tests.unit.broker.cluster.cluster_stand_ins import Machine


def ended(steps):
    """Take all steps at once; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class ChangeSink:
    def __init__(self):
        self.told = []

    def changed(self, partitions):
        self.told.extend(partitions)


class StandIn:
    """`ask` encodes a request, decodes it as the broker would, handles it, and gives the decoded answer."""

    def __init__(self, machine=None, **settings):
        self.machine = machine or Machine(**settings)
        self.clock = ManualClock(Machine.NOW_MS)
        self.waiting = ChangeSink()
        self.cluster = self.machine.start()
        self.logs = self.machine.logs
        endpoints = SimpleNamespace(
            advertised=lambda listener, _: (f"{listener.lower()}.example", 9099), rack=lambda _, mine: mine
        )
        self.placement = Placement(self.cluster, endpoints, Members.of_one(self.cluster.settings.node_id))
        self.hand_overs = HandOvers(self.cluster, self.placement, NO_PEERS, None, None, None)
        self.partition_rows = PartitionRows(self.cluster, self.placement, self.logs.resources.changes)
        self.authorizer = None
        self.audit = None

    @property
    def settings(self):
        return self.cluster.settings

    def ask(self, key, version, **fields):
        api = API[key]
        handler = HANDLERS[key]
        assert handler.min_version <= version <= handler.max_version
        read = decoder_of(api.request, version, flat=handler.flat)
        request, _ = read(encode(api.request(**fields), version), 0)
        replies = []
        context = request_context(version)
        context.route.encode = lambda answer, _: replies.append(answer)
        answer = handler.function(self, request, context) or replies.pop()
        if isinstance(answer, GeneratorType):
            answer = ended(answer)
        parts = []
        encoder_of(api.response, version, flat=handler.flat)(answer, parts)
        return decode(api.response, version, b"".join(parts))


def with_large_topic():
    """A broker with a topic `t`, whose rows are kept, and one of two partitions."""
    broker = StandIn(max_request_partition_size_limit=str(2 * LARGE))
    broker.cluster.create_topic("t", LARGE + 50)
    broker.cluster.create_topic("small", 2)
    return broker
