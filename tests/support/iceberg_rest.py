"""A real REST catalogue of Iceberg on this machine: Apache's own, over SQLite, with its tables in the S3 server of the tests."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

from tests.interop import toolchains
from tests.support import s3_server
from tests.support.waiting import readable

HERE = Path(__file__).parent
VERSION = "1.9.2"
ARTIFACTS = (
    ("org.apache.iceberg", "iceberg-core", VERSION, ""),
    ("org.apache.iceberg", "iceberg-core", VERSION, "tests"),  # has the server
    ("org.apache.iceberg", "iceberg-aws", VERSION, ""),
    ("org.apache.iceberg", "iceberg-aws-bundle", VERSION, ""),
    ("org.eclipse.jetty", "jetty-servlet", "11.0.24", ""),
    ("org.slf4j", "slf4j-nop", "2.0.17", ""),
    ("org.xerial", "sqlite-jdbc", "3.49.1.0", ""),
)
START_SECONDS = 60


def classes() -> Path:
    """The folder with the jars and our compiled class, fetched if missing."""

    def install(folder: Path) -> None:
        wanted = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            + (f"<classifier>{classifier}</classifier>" if classifier else "")
            + "</dependency>"
            for group, name, version, classifier in ARTIFACTS
        )
        (folder / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>catalogue</artifactId>"
            f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
        )
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        toolchains.build([*copy, f"-DoutputDirectory={folder}"], folder)
        source = str(HERE / "RestCatalogue.java")
        toolchains.build(["javac", "-nowarn", "-d", str(folder), "-cp", f"{folder}/*", source], folder)

    return toolchains.whole_folder(toolchains.cache_dir() / "java" / f"iceberg-rest-{VERSION}", install)


@contextmanager
def rest_catalogue(folder: Path, s3: s3_server.S3Server):
    """The catalogue's URL; new tables get a folder below `warehouse` in the bucket."""
    home = classes()
    properties = {
        "uri": f"jdbc:sqlite:{folder / 'catalogue.db'}",
        "warehouse": f"s3://{s3_server.BUCKET}/warehouse",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": s3.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
        "client.region": "us-east-1",
    }
    options = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{home}:{home}/*"]
    said = [f"{name}={value}" for name, value in properties.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["java", *options, "RestCatalogue", *said], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
    try:
        ready = readable(process.stdout.fileno(), START_SECONDS)
        port = process.stdout.readline().strip() if ready else b""
        assert port.isdigit(), (folder / "log").read_text()
        yield f"http://127.0.0.1:{port.decode()}"
    finally:
        process.kill()
        process.wait(20)
        process.stdin.close()
        process.stdout.close()
