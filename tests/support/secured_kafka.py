"""A real Kafka with listeners that require TLS, SASL and both, with a user for each mechanism."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import kafka, process
from benchmarks.kafka import node as nodes
from horolog import Client
from horolog.protocol.messages.scram import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from tests.support.authority import Authority, Issued

RELEASE = "4.3.1"
USER, PASSWORD = "alice", "alice's, =secret"
SCRAM_KINDS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS = 4096
SESSION_MS = 2000

_MODULES = "org.apache.kafka.common.security"
_OAUTH = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"


@dataclass(frozen=True)
class SecuredKafka:
    """Addresses by what they require."""

    authority: Authority
    client: Issued
    open: str
    tls: str
    mutual: str
    sasl: str
    sasl_tls: str
    short: str
    """As `sasl`, with sessions of two seconds."""

    def properties(self, mechanism: str = "", *, tls: bool = False, password: str = PASSWORD) -> dict[str, str]:
        """A client's settings to log in."""
        found = {"security.protocol": f"{'SASL_' * bool(mechanism)}{'SSL' if tls else 'PLAINTEXT'}"}
        if tls:
            found["ssl.truststore.location"] = str(self.authority.trusted)
        if mechanism:
            found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login(mechanism, password)}
        return found


def login(mechanism: str, password: str = PASSWORD) -> str:
    """The line of a JAAS file."""
    if mechanism == "OAUTHBEARER":
        return f'{_OAUTH} required unsecuredLoginStringClaim_sub="{USER}";'
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{_MODULES}.{module} required username="{USER}" password="{password}";'


@contextmanager
def secured_kafka() -> Iterator[SecuredKafka]:
    folder = Path(tempfile.mkdtemp(prefix="kafka-secured-"))
    try:
        authority = Authority(folder)
        server = authority.issue("localhost", "127.0.0.1")
        ports = dict(
            zip(("open", "controller", "tls", "mutual", "sasl", "both", "short"), process.free_ports(7), strict=True)
        )
        try:
            nodes.start(RELEASE, folder / "data", _settings(ports, authority, server), port=ports["open"], heap_mib=256)
            at = {name: f"localhost:{port}" for name, port in ports.items()}
            yield SecuredKafka(
                authority,
                authority.issue("client"),
                at["open"],
                at["tls"],
                at["mutual"],
                at["sasl"],
                at["both"],
                at["short"],
            )
        finally:
            nodes.stop(folder / "data")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(ports: dict[str, int], authority: Authority, server: Issued) -> dict[str, str]:
    protocols = {
        "open": "PLAINTEXT",
        "controller": "PLAINTEXT",
        "tls": "SSL",
        "mutual": "SSL",
        "sasl": "SASL_PLAINTEXT",
        "both": "SASL_SSL",
        "short": "SASL_PLAINTEXT",
    }
    mechanisms = ",".join(("PLAIN", *SCRAM_KINDS, "OAUTHBEARER"))
    settings = {
        "listeners": ",".join(f"{name.upper()}://localhost:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(
            f"{name.upper()}://localhost:{port}" for name, port in ports.items() if name != "controller"
        ),
        "controller.quorum.voters": f"1@localhost:{ports['controller']}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(
            f"{name.upper()}:{protocol}" for name, protocol in protocols.items()
        ),
        "inter.broker.listener.name": "OPEN",
        "sasl.enabled.mechanisms": mechanisms,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.both_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
        "listener.name.mutual.ssl.client.auth": "required",
        "offsets.topic.num.partitions": "3",
    }
    for name in ("sasl", "both", "short"):
        prefix = f"listener.name.{name}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = (
            f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        )
        for mechanism in SCRAM_KINDS:
            settings[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{_MODULES}.scram.ScramLoginModule required;"
        settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = (
            f'{_OAUTH} required unsecuredLoginStringClaim_sub="broker";'
        )
    settings |= {
        f"listener.name.short.{mechanism.lower()}.connections.max.reauth.ms": str(SESSION_MS)
        for mechanism in ("PLAIN", *SCRAM_KINDS, "OAUTHBEARER")
    }
    return settings


async def add_scram_users(address: str) -> None:
    """Add the user's passwords through the open listener."""
    salt = b"0123456789abcdef"
    wanted = [
        ScramCredentialUpsertion(
            name=USER,
            mechanism=number,
            iterations=ITERATIONS,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), salt, ITERATIONS),
        )
        for number, digest in SCRAM_KINDS.values()
    ]
    async with Client(address) as client:
        for one in wanted:  # Kafka accepts one change of a user per request
            answer = await client.request(AlterUserScramCredentialsRequest(upsertions=[one]), controller=True)
            assert answer.results[0].error_code == 0, answer.results[0].error_message


__all__ = ["RELEASE", "SecuredKafka", "add_scram_users", "kafka", "login", "secured_kafka"]
