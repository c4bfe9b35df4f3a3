"""The load generator: one mode against one address, one JSON line. It runs as a process of its own beside the broker.

    python -m benchmarks.load raw --address 127.0.0.1:9092 --pid BROKER_PID --seconds 4

Every answer is checked for its error code, look-ups also for the offset. `client_share` is the part of a core that the generator used: near 1
it was the bottleneck and the rate says nothing about the broker; `cpu_s_per_million` is the broker's, and the steadier figure.
"""

import argparse
import gc
import json
import random
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from confluent_kafka import KafkaException

from benchmarks import consume, fill, frames, java_client, paced, peer, process, pump, real_client, session, share
from benchmarks.frames import Api
from benchmarks.peer import BrokerError, Peer

NO_ERROR = b"\0\0"
LOOKUP_FRAMES = 20_000
PACED_WARM_PART = 0.1
MIXED_BATCHES = 8
GROUP_BATCH = 5000
"""The most records in a batch that a group reads: half a megabyte."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run was asked for; every mode reads the ones that concern it."""

    address: str
    pid: int = 0
    seconds: float = 4.0
    warm_seconds: float = 1.0
    connections: int = 1
    in_flight: int = 1
    records: int = 1
    size_bytes: int = 100
    acks: int = 1
    rate: int = 1000
    topic: str = ""
    fill_records: int = 1_000_000
    batch_bytes: int = 16384
    codec: str = ""
    mixed: bool = False
    headers: int = 0
    partitions: int = 1
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One run; `records` are what the rate counts in (records, requests or look-ups), `unit` says which."""

    mode: str
    unit: str
    count: int
    requests: int
    seconds: float
    rate: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    broker_cpu_s: float | None = None
    cpu_s_per_million: float | None = None
    client_share: float | None = None
    resident_mib: float | None = None
    kib_per_connection: float | None = None


class Meter:
    """CPU of the broker and of this process over one stretch of time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.broker = process.fine_cpu_seconds(pid) if pid else None
        self.client = _own_cpu()
        self.began = time.perf_counter()

    def result(
        self, mode: str, unit: str, count: int, *, requests: int, latencies: Sequence[float] = (), seconds: float = 0.0
    ) -> Result:
        took = time.perf_counter() - self.began
        client = _own_cpu() - self.client
        broker = process.fine_cpu_seconds(self.pid) - self.broker if self.broker is not None else None
        if not count:
            raise BrokerError("nothing was answered in the time measured")
        return Result(
            mode=mode,
            unit=unit,
            count=count,
            requests=requests,
            seconds=seconds or took,
            rate=count / (seconds or took),
            p50_ms=percentile(latencies, 0.5),
            p99_ms=percentile(latencies, 0.99),
            p999_ms=percentile(latencies, 0.999),
            broker_cpu_s=broker,
            cpu_s_per_million=broker / count * 1e6 if broker is not None else None,
            client_share=client / took,
            resident_mib=process.resident_kib(self.pid) / 1024 if self.pid else None,
        )


def percentile(latencies: Sequence[float], part: float) -> float | None:
    """In milliseconds; the value at or below which so large a part lies."""
    if not latencies:
        return None
    return sorted(latencies)[int(part * (len(latencies) - 1))] * 1000


def _own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class RunTopic:
    """A topic for one run, gone with its files afterwards, so that what one run wrote does not slow the next."""

    def __init__(self, options: Options, mode: str) -> None:
        self.options = options
        self.name = options.topic or peer.fresh_name(mode)

    def __enter__(self) -> str:
        with Peer(self.options.address) as asker:
            asker.create_topics([self.name], self.options.partitions, dict(self.options.settings))
        return self.name

    def __exit__(self, *_exc: object) -> None:
        with Peer(self.options.address) as asker:
            asker.delete_topics([self.name])


def _produce_load(options: Options, topic: str, *, old: bool) -> pump.Load:
    """Frames in turn over the partitions; records that vary come in batches that vary too."""
    version = 2 if old else 7 if options.codec == "zstd" else 3
    sets = [_records(options, number, old=old) for number in range(MIXED_BATCHES if options.mixed else 1)]
    made = [
        frames.produce(version, topic, sets[number % len(sets)], acks=options.acks, partition=partition)
        for number, partition in enumerate(_shuffled(options.partitions) or [0] * len(sets))
    ]
    expected = [NO_ERROR] * len(made)
    return pump.Load(made, expected, frames.produce_error_at(topic), frames.produce_reply_size(topic, version))


def _shuffled(partitions: int) -> list[int]:
    """Partitions in an order in which neighbours do not follow each other; nothing where there is one."""
    order = list(range(partitions)) if partitions > 1 else []
    random.Random(partitions).shuffle(order)
    return order


def _records(options: Options, number: int, *, old: bool) -> bytes:
    if options.mixed:
        made = frames.mixed_batch(options.records, now_ms(), number)
    else:
        values = frames.payloads(options.size_bytes)
        values = (values * (options.records // len(values) + 1))[: options.records]
        made = frames.message_set(values, now_ms()) if old else frames.batch(values, now_ms(), headers=options.headers)
    return frames.compressed(made, options.codec) if options.codec else made


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _closed_loop(options: Options, load: pump.Load, mode: str, unit: str, each: int = 1) -> Result:
    """`each`: the number of look-ups in one request."""
    if options.warm_seconds:
        pump.run(options.address, load, options.connections, options.in_flight, options.warm_seconds)
    meter = Meter(options.pid)
    outcome = pump.run(options.address, load, options.connections, options.in_flight, options.seconds)
    count = outcome.requests * (options.records if unit == "records" else each)
    return meter.result(
        mode, unit, count, requests=outcome.requests, latencies=outcome.latencies, seconds=outcome.seconds
    )


def produce(options: Options) -> Result:
    """Batches in Produce v3 where the broker has it, else sets in v2: large requests, counted in records."""
    return _produce(options, "raw", "records", old=None)


def one_record_requests(options: Options) -> Result:
    """The same, counted in requests."""
    return _produce(options, "smallreq", "requests", old=None)


def old_produce(options: Options) -> Result:
    """Produce v2 with plain magic-1 sets, for any broker that still takes them."""
    return _produce(options, "oldproduce", "records", old=True)


def _produce(options: Options, mode: str, unit: str, *, old: bool | None) -> Result:
    if old is None:
        with Peer(options.address) as asker:
            old = asker.version(Api.PRODUCE, 3, 2) == 2
    with RunTopic(options, mode) as topic:
        return _closed_loop(options, _produce_load(options, topic, old=old), mode, unit)


def paced_produce(options: Options) -> Result:
    """One record at each beat, acknowledgement latency."""
    return _paced(options, "paced", follow=False)


def end_to_end(options: Options) -> Result:
    """The same with a consumer at the end of the log: from the send to the consumer's hands."""
    return _paced(options, "endtoend", follow=True)


def half_load(options: Options) -> Result:
    """Batches at a pace below what the broker takes, while `connections` readers read a filled topic from its start again and again."""
    filled(options)
    with _readers(options):
        return _paced(replace(options, topic=""), "halfload", follow=False)


@contextmanager
def _readers(options: Options) -> Iterator[None]:
    """Consumers in processes of their own, that this process's beat does not wait for them; each must have read until it was stopped."""
    whole = options.warm_seconds + options.seconds + paced.DRAIN_SECONDS
    command = [sys.executable, "-m", "benchmarks.load", "consume", "--address", options.address]
    command += ["--fill-records", str(options.fill_records), "--batch-bytes", str(options.batch_bytes)]
    command += ["--size-bytes", str(options.size_bytes), "--warm-seconds", "0", "--seconds", str(whole)]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(options.connections)]
    try:
        yield
        if any(one.poll() is not None for one in running):
            raise BrokerError("a reader ended before the load")
    finally:
        for one in running:
            one.terminate()
            one.wait()


def _paced(options: Options, mode: str, *, follow: bool) -> Result:
    with Peer(options.address) as asker:
        old = asker.version(Api.PRODUCE, 3, 2) == 2
    with RunTopic(options, mode) as topic:
        load = _produce_load(options, topic, old=old)
        with Peer(options.address) as asker:
            leader = asker.leader_of(topic)
        if options.warm_seconds:
            paced.run(leader, load, options.rate, options.warm_seconds)
        with Peer(leader) as asker:
            start = asker.offset_at(topic, -1)
        follower = paced.Follower(leader, topic, 2 if old else 4, start) if follow else None
        meter = Meter(options.pid)
        beat = paced.run(leader, load, options.rate, options.seconds, follower)
        times = beat.consumed if follow else beat.acknowledged
        times = times[int(len(times) * PACED_WARM_PART) :]
        return meter.result(mode, "records", len(beat.sent) * options.records, requests=len(beat.sent), latencies=times)


def filled_topic(options: Options) -> str:
    """The name of the topic that this load reads."""
    return options.topic or f"bench-filled-{options.fill_records}-{options.size_bytes}-{options.batch_bytes}"


def filled(options: Options) -> str:
    topic = filled_topic(options)
    fill.ensure(
        options.address,
        topic,
        options.fill_records,
        size_bytes=options.size_bytes,
        batch_bytes=options.batch_bytes,
        settings=dict(options.settings),
    )
    return topic


def consume_all(options: Options) -> Result:
    """From the start to the end and again, up to 1 MiB an answer."""
    topic = filled(options)
    with Peer(options.address) as asker:
        version = asker.version(Api.FETCH, 4, 2)
    reader = consume.Reader(options.address, topic, version, options.size_bytes)
    reader.verify()
    if options.warm_seconds:
        reader.run(options.warm_seconds)
    meter = Meter(options.pid)
    done = reader.run(options.seconds)
    reader.close()
    return meter.result("consume", "records", done.records, requests=done.requests, seconds=done.seconds)


def time_lookup(options: Options) -> Result:
    """ListOffsets v1 at random times of a filled topic; the offset answered must be the only right one."""
    topic = filled(options)
    chance = random.Random(11)
    offsets = [chance.randrange(options.fill_records) for _ in range(LOOKUP_FRAMES)]
    wanted = [struct.pack(">hqq", 0, fill.FIRST_TIMESTAMP + offset, offset) for offset in offsets]
    asked = [frames.list_offsets(topic, fill.FIRST_TIMESTAMP + offset) for offset in offsets]
    load = pump.Load(asked, wanted, frames.lookup_error_at(topic), frames.lookup_reply_size(topic))
    return _closed_loop(options, load, "timelookup", "lookups")


def many_lookups(options: Options) -> Result:
    """ListOffsets v1 for all partitions of a topic at once, at random times; every answer is checked before the run."""
    with RunTopic(replace(options, settings=(*options.settings, ("retention.ms", "-1"))), "manylookups") as topic:
        count = options.partitions
        for batch in range(fill.LOOKED_UP_BATCHES):
            fill.in_each(options.address, topic, count, fill.LOOKED_UP_RECORDS, fill.looked_up_from(batch), 1)
        asked = []
        for frame, offsets in fill.looked_up(topic, count):
            asked.append(frame)
            found = frames.answered_lookups(fill.ask(options.address, frame), topic)
            if found != [(partition, 0, fill.FIRST_TIMESTAMP + at, at) for partition, at in enumerate(offsets)]:
                raise BrokerError(f"look-ups in {count} partitions were answered with {found[:3]} ...")
        at, size = frames.lookup_error_at(topic), frames.lookups_reply_size(topic, count)
        load = pump.Load(asked, [NO_ERROR] * len(asked), at, size)
        return _closed_loop(options, load, "manylookups", "lookups", options.partitions)


def max_lookup(options: Options) -> Result:
    """ListOffsets v7 for the record with the largest time, of a filled topic."""
    topic, last = filled(options), options.fill_records - 1
    wanted = struct.pack(">hqq", 0, fill.FIRST_TIMESTAMP + last, last)
    asked = frames.offset_of_max_timestamp(topic)
    at, size = frames.max_timestamp_error_at(topic), frames.max_timestamp_reply_size(topic)
    return _closed_loop(options, pump.Load([asked], [wanted], at, size), "maxlookup", "lookups")


def old_lookup(options: Options) -> Result:
    """ListOffsets v0 for the end of a filled topic, which clients before 0.10.1 ask for."""
    topic = filled(options)
    wanted = struct.pack(">hiq", 0, 1, options.fill_records)
    asked = frames.first_offset_at(topic, -1)
    at, size = frames.first_offset_error_at(topic), frames.first_offset_reply_size(topic)
    return _closed_loop(options, pump.Load([asked], [wanted], at, size), "oldlookup", "lookups")


def many_connections(options: Options) -> Result:
    """Idle connections that have asked for ApiVersions once; what each adds to the broker's resident memory."""
    if not options.pid:
        raise BrokerError("memory per connection needs the broker's --pid")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < options.connections + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.connections + 100), hard))
    held: list[Peer] = []
    before = process.resident_kib(options.pid)
    began = time.perf_counter()
    try:
        for _ in range(options.connections):
            held.append(Peer(options.address))
            held[-1].versions()
        took = time.perf_counter() - began
        time.sleep(0.5)
        grown = process.resident_kib(options.pid) - before
    finally:
        for one in held:
            one.socket.close()
    count = options.connections
    return Result("manyconn", "connections", count, count, took, count / took, kib_per_connection=grown / count)


def client_produce(options: Options) -> Result:
    """A librdkafka producer, batching as it likes: often bound by the client itself."""
    with RunTopic(options, "clientproduce") as topic:
        if options.warm_seconds:
            real_client.produce(options.address, topic, options.size_bytes, options.warm_seconds)
        meter = Meter(options.pid)
        count, took = real_client.produce(options.address, topic, options.size_bytes, options.seconds)
        return meter.result("clientproduce", "records", count, requests=count, seconds=took)


def client_producers(options: Options) -> Result:
    """As many idempotent librdkafka producers as `connections` says, each with linger.ms=1."""
    with RunTopic(options, "producers") as topic:
        if options.warm_seconds:
            real_client.produce_by_many(
                options.address, topic, options.size_bytes, options.warm_seconds, options.connections
            )
        meter = Meter(options.pid)
        count, took = real_client.produce_by_many(
            options.address, topic, options.size_bytes, options.seconds, options.connections
        )
        return meter.result("clientproducers", "records", count, requests=count, seconds=took)


def client_consume(options: Options) -> Result:
    """A librdkafka consumer that reads a filled topic from start to end, and again."""
    topic = filled(options)
    meter = Meter(options.pid)
    count, took = real_client.consume(options.address, topic, options.fill_records, options.seconds)
    return meter.result("clientconsume", "records", count, requests=count, seconds=took)


def share_consume(options: Options) -> Result:
    """As many members of a share group as `connections` says read a filled topic; each asks for `records` at a time."""
    topic, end = filled(options), options.fill_records
    if options.warm_seconds:
        with share.Group(options.address, topic, 1, options.connections, options.records) as group:
            group.run(options.warm_seconds, end)
    with share.Group(options.address, topic, 1, options.connections, options.records) as group:
        meter = Meter(options.pid)
        done = group.run(options.seconds, end)
        return meter.result(
            "share", "records", done.records, requests=done.requests, latencies=done.latencies, seconds=done.seconds
        )


def session_of_many(options: Options) -> Result:
    """A fetch session of all partitions of a topic, to one of which comes a record at a time."""
    with RunTopic(options, "session") as topic:
        # A real Kafka may not lead all of them yet. Of an old record, the first one of today would begin a segment.
        fill.in_each(options.address, topic, options.partitions, 1, now_ms())
        with session.Session(options.address, topic, options.partitions, first_offset=1) as follower:
            follower.run(options.warm_seconds)
            meter = Meter(options.pid)
            done = follower.run(options.seconds)
            return meter.result(
                "session",
                "records",
                done.records,
                requests=done.records,
                latencies=done.latencies,
                seconds=done.seconds,
            )


def group_consume(options: Options) -> Result:
    """A new group of as many librdkafka consumers as `connections` says reads all partitions of a topic from the start."""
    batches = -(-options.records // GROUP_BATCH)
    with RunTopic(replace(options, settings=(*options.settings, ("retention.ms", "-1"))), "group") as topic:
        for _ in range(batches):
            fill.in_each(options.address, topic, options.partitions, options.records // batches)
        meter = Meter(options.pid)
        expected = options.records // batches * batches * options.partitions
        count, took = real_client.consume_as_group(options.address, topic, expected, options.connections)
        return meter.result("groupconsume", "records", count, requests=count, seconds=took)


def java_produce(options: Options) -> Result:
    """`records` records by Java's producer at its defaults; the rate and the latencies are what its own program prints."""
    with RunTopic(options, "java") as topic:
        meter = Meter(options.pid)
        count, took, (p50, p99, p999) = java_client.produce(
            options.address, topic, options.records, options.size_bytes, options.codec
        )
        found = meter.result("javaproduce", "records", count, requests=count, seconds=took)
        return replace(found, p50_ms=p50, p99_ms=p99, p999_ms=p999)


MODES: dict[str, Callable[[Options], Result]] = {
    "raw": produce,
    "smallreq": one_record_requests,
    "oldproduce": old_produce,
    "paced": paced_produce,
    "endtoend": end_to_end,
    "halfload": half_load,
    "consume": consume_all,
    "timelookup": time_lookup,
    "maxlookup": max_lookup,
    "oldlookup": old_lookup,
    "manyconn": many_connections,
    "manylookups": many_lookups,
    "share": share_consume,
    "clientproduce": client_produce,
    "clientproducers": client_producers,
    "clientconsume": client_consume,
    "session": session_of_many,
    "groupconsume": group_consume,
    "javaproduce": java_produce,
}


def parse(arguments: list[str] | None = None) -> tuple[str, Options]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="One load against one broker.")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--address", required=True)
    parser.add_argument(
        "--topic", default="", help="a name of your own; filled topics are kept, the others are deleted"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the topic")
    defaults = Options("")
    for name in (
        "pid",
        "connections",
        "in_flight",
        "records",
        "size_bytes",
        "acks",
        "rate",
        "fill_records",
        "batch_bytes",
        "partitions",
        "headers",
    ):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name))
    for name in ("seconds", "warm_seconds"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=getattr(defaults, name))
    parser.add_argument("--codec", default="", choices=["", *frames.CODECS])
    parser.add_argument(
        "--mixed", action="store_true", help="records of 20 to 600 bytes, with times and keys that vary"
    )
    chosen = vars(parser.parse_args(arguments))
    settings = tuple(tuple(pair.split("=", 1)) for pair in chosen.pop("set"))
    return chosen.pop("mode"), Options(**chosen, settings=settings)


def main(arguments: list[str] | None = None) -> int:
    mode, options = parse(arguments)
    gc.disable()  # a collection of this process would show as latency of the broker
    try:
        print(json.dumps({key: value for key, value in asdict(MODES[mode](options)).items() if value is not None}))
    except (BrokerError, pump.RefusedError, KafkaException, OSError) as fault:
        print(f"{mode} against {options.address}: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
