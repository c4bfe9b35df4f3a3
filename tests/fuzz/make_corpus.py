"""Makes the seeds of every target from real frames, sets and files: `python -m tests.fuzz.make_corpus`."""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trustme

from horolog.broker.security.stores import encoded_certificates
from horolog.protocol.apis import API
from horolog.protocol.compile import encode
from tests.fuzz import corpus, target_certificates, target_compression, target_files, target_messages, target_sasl
from tests.support import golden
from tests.support.sasl import ScramPeer, plain_token
from tests.vendor.wire_prober.wire import SPEC, batch, body, compress, frame, header, is_flex, msg, rec, wrap

BASE_MS = 1_600_000_000_000
SMALL_CASES = ("v1-gzip-ct", "v1-ooo-dense", "v2-idempotent", "v2-txn", "v0-then-v1")


def record_sets() -> Iterator[tuple[str, bytes]]:
    inner = b"".join(msg(b"value %d" % index, b"k", index, 1, ts=BASE_MS + index) for index in range(3))
    yield "v1", inner
    yield "v0", b"".join(msg(b"value %d" % index, None, index, 0) for index in range(3))
    for codec in ("gzip", "snappy", "snappy_raw", "lz4", "lz4_legacy"):
        yield f"v1-{codec}", wrap(codec, inner, 1, BASE_MS + 2, 2)
    yield "v0-gzip", wrap("gzip", b"".join(msg(b"v", None, index, 0) for index in range(3)), 0, offset=2)
    values = [
        {"value": b"a", "ts": BASE_MS, "headers": [(b"h", b"1"), (b"n", None)]},
        {"value": None, "key": b"k", "ts": BASE_MS - 5},
    ]
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        yield f"v2-{codec}", batch(values, codec=codec)
    yield "v2-many", batch([b"x" * 20] * 40, ts=BASE_MS)
    yield "v2-idempotent", batch(values, pid=77, epoch=1, seq=5)
    yield "v2-transactional", batch(values, pid=77, epoch=1, seq=5, attrs=0x10)


def requests() -> Iterator[tuple[str, bytes]]:
    for name, (key, *_) in SPEC.items():
        if key in API:
            version = API[key].max_version
            yield (
                f"{name}-{version}",
                frame(header(key, version, 7, "seed", is_flex(name, version)) + body(name, version, {})),
            )
    for name, records in record_sets():
        version = 9 if name.startswith("v2") else 2
        data = {"topics": [{"name": "t", "partitions": [{"index": 0, "records": records}]}]}
        yield f"Produce-{name}", frame(header(0, version, 7, "seed", version >= 9) + body("Produce", version, data))
    for version in (0, 4, 12, 13, 17):
        topic = {"topic_id": "11" * 16} if version >= 13 else {"topic": "t"}
        data = {"topics": [topic | {"partitions": [{"partition": 0, "fetch_offset": 0}]}]}
        yield f"Fetch-{version}", frame(header(1, version, 7, "seed", version >= 12) + body("Fetch", version, data))
    for version in (0, 1, 7, 10):
        data = {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": BASE_MS}]}]}
        yield (
            f"ListOffsets-{version}",
            frame(header(2, version, 7, "seed", version >= 6) + body("ListOffsets", version, data)),
        )
    topic = {"name": "made", "num_partitions": 2, "configs": [{"name": "segment.bytes", "value": "1000"}]}
    yield "CreateTopics", frame(header(19, 5, 7, "seed", True) + body("CreateTopics", 5, {"topics": [topic]}))
    yield (
        "Metadata",
        frame(
            header(3, 12, 7, "seed", True)
            + body("Metadata", 12, {"topics": [{"name": "t"}, {"topic_id": "22" * 16, "name": None}]})
        ),
    )


def write(target: str, name: str, data: bytes) -> None:
    (corpus.folder(target) / f"seed-{name}").write_bytes(data)


def make_messages() -> None:
    for name, whole in requests():
        key, version = struct.unpack_from(">hh", whole, 4)
        api = API[key]
        flexible = version >= api.flexible_from
        head = bytes([target_messages.KEYS.index(key), version - api.min_version])
        write("messages", name, head + b"\0" + whole[4 + 8 + 2 + 4 + (1 if flexible else 0) :])
        if "-" in name and not name.startswith("Produce-v"):
            write("messages", f"{name}-response", head + b"\1" + encode(api.response(), version))


def make_files(root: Path) -> None:
    kinds = {".snapshot": 5, ".txnindex": 6, ".timeindex": 8, ".index": 9}
    for name in SMALL_CASES:
        for path in sorted((root / name / "clean").rglob("*")):
            kind = kinds.get(path.suffix, 0 if "offset-checkpoint" in path.name else None)
            kind = {
                "leader-epoch-checkpoint": 3,
                "partition.metadata": 1,
                "meta.properties": 4,
                ".kafka_cleanshutdown": 2,
            }.get(path.name, kind)
            if kind is not None and path.is_file():
                write("files", f"{name}-{path.name.lstrip('.')}", bytes([kind]) + path.read_bytes()[:400])
    assert len(target_files.READERS) == 10


def make_logins() -> None:
    peer = ScramPeer("SCRAM-SHA-256", "alice", "secret")
    challenge = b"r=abcdef,s=c2FsdHNhbHQ=,i=4096"
    write("sasl", "scram", b"\0" + peer.first() + target_sasl.PARTING + peer.last(challenge))
    write("sasl", "plain", b"\1" + plain_token("alice", "secret", "alice"))
    token = b"eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJhIiwiZXhwIjoxfQ.c2ln"
    message = b"n,a=alice,\x01auth=Bearer " + token + b"\x01host=h\x01\x01"
    write("sasl", "oauthbearer", b"\2" + message + target_sasl.PARTING + b"\x01")
    write("sasl", "token", b"\3" + token)
    key = b'{"kty":"EC","crv":"P-256","kid":"k","use":"sig","x":"AA","y":"AA"}'
    write("sasl", "keys", b'\4{"keys":[' + key + b"]}")
    write("sasl", "jaas", b'\5x.y.PlainLoginModule required user_a="b\\"\\101" /* c */ user_d=e;')
    assert len(target_sasl.WAYS) == 6


def make_certificates() -> None:
    """Other ones at each run: keys are random."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "alice@example.org", common_name="alice", organization_name="Logs, Inc")
    chain = b"".join(one.bytes() for one in issued.cert_chain_pems)
    pem = issued.private_key_pem.bytes() + chain + target_certificates.PARTING + authority.cert_pem.bytes()
    write("certificates", "shown", b"\0" + encoded_certificates(chain.decode())[0])
    write("certificates", "listener", b"\1" + pem)
    write("certificates", "client", b"\2" + pem)
    assert len(target_certificates.WAYS) == 3


def main() -> None:
    make_logins()
    make_certificates()
    for number, (name, data) in enumerate(record_sets()):
        write("records", name, bytes([number, 1]) + data)
        write("records", f"{name}-inside", bytes([number, 2 | (number % 5) << 2 | 0x40]) + data)
    for number, codec in enumerate((0, 0x80)):
        records = rec(b"a", b"k", 0, 0, ((b"h", b"1"),)) + rec(None, b"k", 1, 5) + rec(b"b" * 70, None, 2, -7)
        write("records", f"records-{number}", bytes([0, 3 | codec, 3, 0]) + records)
    for name, data in requests():
        write("frames", name, b"\0" + data)
    write("frames", "three", b"\1" + b"".join(data for _, data in requests())[:600])
    for number in range(6):
        for file in range(0, 32, 3):
            write(
                "folder",
                f"{number}-{file}",
                bytes([number | (file & 1) << 7, file, file & 3, file, 7 * file, 0, 0, 0, 9]),
            )
    make_messages()
    for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd")):
        write("compression", codec, bytes([number | 12]) + compress(codec, b"some text, some text, some text " * 3)[1])
    assert len(target_compression.CODECS) == 4
    with tempfile.TemporaryDirectory() as scratch:
        make_files(golden.unpack(Path(scratch)))


if __name__ == "__main__":
    main()
