"""Runs a second S3 server with conditional writes, of other people and in another language: S3Proxy over a folder, from Maven's repository."""

from pathlib import Path

from tests.interop import toolchains
from tests.support.s3_server import Process

VERSION = "4.1.0"
JARS = (
    f"org.gaul:s3proxy:{VERSION}",
    "args4j:args4j:2.37",
    "ch.qos.logback:logback-classic:1.6.3",
    "ch.qos.logback:logback-core:1.6.3",
    "com.fasterxml.jackson.core:jackson-annotations:2.22",
    "com.fasterxml.woodstox:woodstox-core:7.0.0",
    "com.google.guava:guava:33.7.1-jre",
    "jakarta.servlet:jakarta.servlet-api:6.0.0",
    "org.codehaus.woodstox:stax2-api:4.2.2",
    "org.slf4j:slf4j-api:2.0.18",
    "tools.jackson.core:jackson-core:3.2.2",
    "tools.jackson.core:jackson-databind:3.2.2",
    "tools.jackson.dataformat:jackson-dataformat-xml:3.2.2",
    *(f"software.amazon.awssdk:{name}:2.54.2" for name in ("aws-core", "checksums", "checksums-spi")),
    *(f"software.amazon.awssdk:{name}:2.54.2" for name in ("http-client-spi", "s3", "sdk-core", "utils")),
)
"""What it loads where a folder has the objects; the clouds that it can stand before need a hundred more."""

QUIET = """<configuration><appender name="S" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%level %logger %msg%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="S"/></root></configuration>
"""


def jars() -> Path:
    return toolchains.maven_jars(f"s3proxy-{VERSION}", JARS)


class S3Proxy(Process):
    """Objects are files below `root`, as with the other server."""

    def _command(self):
        settings, logging = self._folder / "s3proxy.properties", self._folder / "logback.xml"
        logging.write_text(QUIET)
        settings.write_text(
            "s3proxy.authorization=aws-v2-or-v4\n"
            f"s3proxy.endpoint=http://127.0.0.1:{self._port}\n"
            f"s3proxy.identity={self.at.access_key}\ns3proxy.credential={self.at.secret_key}\n"
            "jclouds.provider=filesystem-nio2\njclouds.identity=none\njclouds.credential=none\n"
            f"jclouds.filesystem.basedir={self.at.root}\n"
        )
        options = ["-Xmx256m", "-XX:+UseSerialGC", f"-Dlogback.configurationFile={logging}"]
        return ["java", *options, "-cp", f"{jars()}/*", "org.gaul.s3proxy.Main", "--properties", str(settings)]

    def _environment(self):
        return {}
