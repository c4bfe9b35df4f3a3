"""Java's producer at its defaults, driven by the program that Kafka ships to measure it."""

import re
import shutil
import subprocess

from benchmarks.kafka.jars import MissingJarsError, libs
from benchmarks.peer import BrokerError

RELEASE = "4.3.1"
PROGRAM = "org.apache.kafka.tools.ProducerPerformance"
TIMEOUT_SECONDS = 240
_TOTAL = re.compile(
    r"^(\d+) records sent, ([\d.]+) records/sec .*? ([\d.]+) ms 50th.*? ([\d.]+) ms 99th, ([\d.]+) ms 99.9th",
    re.MULTILINE,
)


def command(address: str, topic: str, records: int, size_bytes: int, codec: str) -> list[str]:
    """As fast as it can; everything but the codec is the client's default, acks=all and idempotence included."""
    java = shutil.which("java")
    if java is None:
        raise BrokerError("needs Java")
    try:
        folder = libs(RELEASE)
    except MissingJarsError as missing:
        raise BrokerError(str(missing)) from missing
    words = [java, "-Xmx512m", "-cp", f"{folder}/*", PROGRAM, "--topic", topic, "--num-records", str(records)]
    words += [
        "--record-size",
        str(size_bytes),
        "--throughput",
        "-1",
        "--producer-props",
        f"bootstrap.servers={address}",
    ]
    return [*words, f"compression.type={codec}"] if codec else words


def parse_total(said: str) -> tuple[int, float, tuple[float, float, float]]:
    """Records, seconds, and the latencies p50, p99 and p99.9 in milliseconds, from the last line that has them."""
    found = _TOTAL.findall(said)
    if not found:
        raise BrokerError(f"the program printed no total: {said[-300:]}")
    count, rate, *latencies = found[-1]
    p50, p99, p999 = map(float, latencies)
    return int(count), int(count) / float(rate), (p50, p99, p999)


def produce(
    address: str, topic: str, records: int, size_bytes: int, codec: str
) -> tuple[int, float, tuple[float, float, float]]:
    words = command(address, topic, records, size_bytes, codec)
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0 or "Exception" in done.stdout + done.stderr:
        raise BrokerError((done.stdout + done.stderr)[-300:])
    total = parse_total(done.stdout)
    if total[0] != records:
        raise BrokerError(f"{total[0]} of {records} records were sent")
    return total
