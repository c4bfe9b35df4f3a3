"""The settings of Kafka's Java consumer and producer, by their names after `kafka.`: users who migrate have some of them.

They tune that client and have no effect here; the table exists so that any other name can be refused. Taken from Kafka
0.10 to 4.3. Those with an effect here are in `options`, those on security in `horolog.client.security`.
"""

_COMMON = """
    auto.include.jmx.reporter client.dns.lookup client.rack config.providers connections.max.idle.ms
    enable.metrics.push metadata.cluster.check.enable metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
_CONSUMER = """
    allow.auto.create.topics auto.commit.interval.ms check.crcs exclude.internal.topics fetch.max.wait.ms fetch.min.bytes
    group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms max.poll.interval.ms
    max.poll.records partition.assignment.strategy session.timeout.ms
"""
_PRODUCER = """
    block.on.buffer.full buffer.memory compression.gzip.level compression.lz4.level compression.zstd.level linger.ms
    max.in.flight.requests.per.connection max.request.size metadata.fetch.timeout.ms metadata.max.idle.ms
    retries timeout.ms transaction.timeout.ms
"""


# What has an effect in reading or writing only.
_ELSEWHERE = """
    acks batch.size compression.type default.api.timeout.ms delivery.timeout.ms fetch.max.bytes isolation.level
    key.serializer max.block.ms max.partition.fetch.bytes partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.ignore.keys transaction.two.phase.commit.enable value.serializer
"""

NAMES = frozenset(f"kafka.{name}" for table in (_COMMON, _CONSUMER, _PRODUCER, _ELSEWHERE) for name in table.split())
