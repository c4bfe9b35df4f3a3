"""One Kafka node on loopback: KRaft with its own controller from 3.0 on, a ZooKeeper beside the broker before.

Everything of a node lies in its data folder: `logs` (the partition directories), `server.properties`, `server.log`, `broker.out`, and the
process ids in `broker.pid` and `zookeeper.pid`, by which another run can end it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peer, process
from benchmarks.kafka import jars

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
READY_TIMEOUT_SECONDS = 120.0
MAX_HEAP_MIB = 1024
FLAGS_VARIABLE = "HOROLOG_KAFKA_JAVA_FLAGS"
"""More flags for Java, for those who look at answers and not at the time they take."""
PATTERN = "[%d] %p %m (%c)%n"


@dataclass(frozen=True, slots=True)
class Node:
    """A node that answers; `ready_seconds` from the start of the broker's process to its first answer."""

    version: str
    address: str
    pid: int
    data: Path
    ready_seconds: float


def start(
    version: str,
    data: Path,
    settings: Mapping[str, str] | None = None,
    *,
    port: int = 0,
    heap_mib: int = MAX_HEAP_MIB,
    partitions: int = 0,
) -> Node:
    """Start a node and wait until it answers (and leads so many partitions); a data folder that exists is taken over."""
    if heap_mib > MAX_HEAP_MIB:
        raise ValueError(f"a heap of {heap_mib} MiB is more than the {MAX_HEAP_MIB} MiB allowed here")
    classpath = f"{jars.libs(version)}/*"
    data.mkdir(parents=True, exist_ok=True)
    chosen, second = process.free_ports(2)
    port = port or chosen
    _write_logging(data)
    raft = is_raft(version)
    lines = properties(version, data, port, second) | dict(settings or {})
    (data / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    try:
        if raft:
            _format(version, classpath, data)
        else:
            _start_zookeeper(version, classpath, data, second)
        began = time.monotonic()
        pid = _start_broker(version, classpath, data, heap_mib)
        address = f"127.0.0.1:{port}"
        explain = lambda: process.tail(data / "broker.out") + "\n" + process.tail(data / "server.log")  # noqa: E731
        process.wait_until(lambda: peer.is_ready(address, partitions), pid, READY_TIMEOUT_SECONDS, explain)
        return Node(version, address, pid, data, time.monotonic() - began)
    except BaseException:
        stop(data, kill=True)
        raise


@contextmanager
def running(version: str, /, *, data: Path | None = None, heap_mib: int = 512, **settings: object) -> Iterator[Node]:
    """A node for the length of a `with`; a setting may be spelt with underscores for its dots."""
    scratch = None if data else tempfile.mkdtemp(prefix="kafka-")
    folder = data or Path(str(scratch))
    try:
        node = start(
            version, folder, {key.replace("_", "."): str(value) for key, value in settings.items()}, heap_mib=heap_mib
        )
        try:
            yield node
        finally:
            stop(folder)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


def stop(data: Path, *, kill: bool = False) -> None:
    """End the broker, then its ZooKeeper, by the process ids in the data folder."""
    _end(data / "broker.pid", data, kill=kill)
    _end(data / "zookeeper.pid", data, kill=False)


def is_raft(version: str) -> bool:
    return jars.release(version) >= (3, 3)


def properties(version: str, data: Path, port: int, second_port: int) -> dict[str, str]:
    """A node of its own: one replica everywhere, small internal topics, no wait before a group's first rebalance."""
    common = {
        "log.dirs": str(data / "logs"),
        "num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
    }
    listener = f"PLAINTEXT://127.0.0.1:{port}"
    if jars.release(version) >= (0, 11):
        common |= {f"transaction.state.log.{key}": "1" for key in ("replication.factor", "min.isr", "num.partitions")}
        common["group.initial.rebalance.delay.ms"] = "0"
    if not is_raft(version):
        listen = (
            {"host.name": "127.0.0.1", "port": str(port)} if jars.release(version) < (0, 9) else {"listeners": listener}
        )
        zookeeper = {"zookeeper.connect": f"127.0.0.1:{second_port}", "zookeeper.connection.timeout.ms": "20000"}
        return common | listen | zookeeper | {"broker.id": "0", "delete.topic.enable": "true"}
    if jars.release(version) >= (4, 0):
        common |= {f"share.coordinator.state.topic.{key}": "1" for key in ("replication.factor", "min.isr")}
    return common | {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{second_port}",
        "listeners": f"{listener},CONTROLLER://127.0.0.1:{second_port}",
        "advertised.listeners": listener,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


def _write_logging(data: Path) -> None:
    old = "log4j.rootLogger={level},A\nlog4j.appender.A=org.apache.log4j.FileAppender\nlog4j.appender.A.File={file}\n"
    old += (
        "log4j.appender.A.layout=org.apache.log4j.PatternLayout\nlog4j.appender.A.layout.ConversionPattern={pattern}\n"
    )
    (data / "log4j.properties").write_text(old.format(level="INFO", file=data / "server.log", pattern=PATTERN))
    (data / "zookeeper-log4j.properties").write_text(
        old.format(level="WARN", file=data / "zookeeper.log", pattern=PATTERN)
    )
    (data / "log4j2.properties").write_text(
        f"status=error\nappender.f.type=File\nappender.f.name=F\nappender.f.fileName={data / 'server.log'}\n"
        f"appender.f.layout.type=PatternLayout\nappender.f.layout.pattern={PATTERN}\n"
        "rootLogger.level=info\nrootLogger.appenderRef.f.ref=F\n"
    )


def _logging_flag(version: str, data: Path) -> str:
    if jars.release(version) >= (4, 0):
        return f"-Dlog4j2.configurationFile={data / 'log4j2.properties'}"
    return f"-Dlog4j.configuration=file:{data / 'log4j.properties'}"


def _opened_packages(version: str) -> list[str]:
    """Old releases reach into parts of the JDK that newer ones have closed."""
    if jars.release(version) >= (3, 0):
        return []
    names = ("java.nio", "sun.nio.ch", "jdk.internal.ref", "java.lang")
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in names]
    return opened + [f"--add-exports=java.base/{name}=ALL-UNNAMED" for name in names[1:3]]


def _format(version: str, classpath: str, data: Path) -> None:
    if (data / "logs" / "meta.properties").exists():
        return
    command = [
        "java",
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        _logging_flag(version, data),
        "-cp",
        classpath,
        "kafka.tools.StorageTool",
    ]
    command += ["format", "-t", CLUSTER_ID, "-c", str(data / "server.properties")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=READY_TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        raise process.StartError(f"format failed: {done.stdout}{done.stderr}")


def _start_zookeeper(version: str, classpath: str, data: Path, port: int) -> None:
    (data / "zookeeper").mkdir(exist_ok=True)
    (data / "zookeeper.cfg").write_text(
        f"dataDir={data / 'zookeeper'}\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\ntickTime=500\n"
    )
    flags = ["-Xmx128m", "-Djava.net.preferIPv4Stack=true", "-Dzookeeper.admin.enableServer=false", *_more_flags()]
    flags.append(f"-Dlog4j.configuration=file:{data / 'zookeeper-log4j.properties'}")
    main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(data / "zookeeper.cfg")]
    command = ["java", *flags, *_opened_packages(version), "-cp", classpath, *main]
    pid = _spawn(command, data / "zookeeper.out", data / "zookeeper.pid")
    process.wait_until(lambda: _accepts(port), pid, 30.0, lambda: process.tail(data / "zookeeper.out"))


def _accepts(port: int) -> bool:
    try:
        peer.Peer(f"127.0.0.1:{port}", 1.0).socket.close()
        return True
    except OSError:
        return False


def _start_broker(version: str, classpath: str, data: Path, heap_mib: int) -> int:
    flags = [f"-Xms{heap_mib}m", f"-Xmx{heap_mib}m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    flags += ["-XX:InitiatingHeapOccupancyPercent=35", "-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true"]
    flags += [_logging_flag(version, data), *_opened_packages(version), *_more_flags()]
    command = ["java", *flags, "-cp", classpath, "kafka.Kafka", str(data / "server.properties")]
    return _spawn(command, data / "broker.out", data / "broker.pid")


def _more_flags() -> list[str]:
    return os.environ.get(FLAGS_VARIABLE, "").split()


def _spawn(command: list[str], output: Path, pid_file: Path) -> int:
    with output.open("wb") as out:
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    pid_file.write_text(str(started.pid))
    _STARTED[started.pid] = started
    return started.pid


# Children of this process must be waited for, or they stay as zombies; a node stopped from another run is not in here.
_STARTED: dict[int, subprocess.Popen[bytes]] = {}


def process_of(node: Node) -> subprocess.Popen[bytes]:
    """The process of a node that this one has started."""
    return _STARTED[node.pid]


def _end(pid_file: Path, data: Path, *, kill: bool) -> None:
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    if _is_ours(pid, data):
        if kill:
            process.send(pid, signal.SIGKILL)
        process.end(pid, _STARTED.pop(pid, None))
    pid_file.unlink()


def _is_ours(pid: int, data: Path) -> bool:
    """A process id is used again after a while: only end what names this data folder on its command line."""
    try:
        return f"{data}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
