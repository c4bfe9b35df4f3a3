"""Segments are asked for where the broker says, or where somebody names; a failure is one sentence, and no token goes astray."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_configs import Config
from horolog.client.producing.producer import Producer
from horolog.client.segments.segments_look import (
    LISTEN,
    PROTOCOL,
    HttpAccess,
    HttpUrlError,
    NoSegments,
    ask,
    ask_each,
    find,
    find_each,
    leaders_of,
    look,
)
from horolog.client.values.errors import KafkaError
from horolog.protocol.errors import ErrorCode
from horolog.testing import horolog_broker, horolog_cluster
from tests.support.certificates import Certificates

TOKEN = "a-token-of-16-chars"


async def topic_of(broker, admin, records=3):
    broker.create_topic("t", 2)
    async with Producer(admin.client) as producer:
        for number in range(records):
            await producer.send("t", b"v", timestamp_ms=1000 + number, partition=0)
    return (await admin.client.metadata(["t"])).topics["t"]


@pytest.mark.parametrize("listen", ["127.0.0.1:0", ":0"])
async def test_a_horolog_tells_where_its_segments_are_told(listen):
    async with horolog_broker(horolog_http_listen=listen) as broker, Admin(broker.bootstrap) as admin:
        topic = await topic_of(broker, admin)
        found = await look(admin, topic, times=[1001, -5])
        assert found.covers([0, 1])
        assert found.partitions[0].high_watermark == 3
        assert len(found.partitions[0].at) == 2
        assert list((await look(admin, topic, partitions=[1])).partitions) == [1]
        named = HttpAccess(f"http://127.0.0.1:{broker.broker.http_port}/")
        assert (await find(admin, named)) is named
        (number,) = admin.client.view.nodes
        assert await find_each(admin, HttpAccess()) == {number: await find(admin, HttpAccess())}
        assert (await ask(named, topic)).id == found.id
        with pytest.raises(NoSegments, match="another cluster"):
            await ask(named, replace(topic, id=b"x" * 16))
        with pytest.raises(NoSegments, match="HTTP 400"):
            await ask(named, topic, times=range(1001))
        await admin.delete_topics(["t"])
        with pytest.raises(NoSegments, match="does not know this topic"):
            await ask(named, topic)


async def test_a_token():
    settings = {"horolog_http_listen": "127.0.0.1:0", "horolog_http_token": TOKEN}
    async with horolog_broker(**settings) as broker, Admin(broker.bootstrap) as admin:
        topic = await topic_of(broker, admin)
        with pytest.raises(NoSegments, match="requires a token"):
            await look(admin, topic)
        assert (await look(admin, topic, HttpAccess(token=TOKEN))).covers([0, 1])


async def test_https(tmp_path):
    certificates = Certificates(tmp_path)
    settings = certificates.settings(horolog_http_protocol="HTTPS", horolog_http_listen="127.0.0.1:0")
    settings = {key.replace(".", "_"): value for key, value in settings.items() if key != "listeners"}
    async with horolog_broker(**settings) as broker, Admin(broker.bootstrap) as admin:
        topic = await topic_of(broker, admin)
        assert (await look(admin, topic, HttpAccess(ca_file=str(certificates.ca)))).covers([0, 1])
        with pytest.raises(NoSegments, match="TLS"):
            await look(admin, topic)


async def test_nobody_there(unused_tcp_port):
    async with horolog_broker() as broker, Admin(broker.bootstrap) as admin:
        topic = await topic_of(broker, admin)
        with pytest.raises(NoSegments, match="no HTTP port"):
            await look(admin, topic)
        with pytest.raises(NoSegments, match="cannot be reached"):
            await look(admin, topic, HttpAccess(f"http://127.0.0.1:{unused_tcp_port}"))
        with pytest.raises(NoSegments, match=r"not HTTP|no HTTP|did not answer"):
            await look(admin, topic, HttpAccess(f"http://{broker.bootstrap}", timeout_ms=300))


class Said:
    """An admin of a broker that says this of itself."""

    def __init__(self, settings, host="broker", serves=True):
        node = SimpleNamespace(id=1, host=host)
        self.settings = settings
        self.client = SimpleNamespace(view=SimpleNamespace(nodes={1: node}), versions=self.versions)
        self._serves = serves

    async def versions(self):
        return SimpleNamespace(serves=lambda key, version: self._serves)

    async def describe_configs(self, kind, name, keys):
        assert (kind, name) == ("broker", "1")
        if isinstance(self.settings, Exception):
            raise self.settings
        return {key: Config(key, value, 4) for key, value in self.settings.items()}


async def test_brokers_of_a_cluster_list_what_each_leads():
    async with horolog_cluster(horolog_http_listen="127.0.0.1:0") as cluster, Admin(cluster.bootstrap) as admin:
        await admin.create_topic("t", 6)
        topic = (await admin.client.metadata(["t"])).topics["t"]
        assert leaders_of(topic) == {1, 2, 3}
        assert leaders_of(topic, [0]) == {topic.partitions[0].leader}
        found = await find_each(admin, HttpAccess())
        assert sorted((await ask_each(found.values(), topic)).partitions) == list(range(6))
        assert sorted((await look(admin, topic, times=[1])).partitions) == list(range(6))


@pytest.mark.parametrize(
    ("settings", "url", "has_token"),
    [
        ({LISTEN: ":9464"}, "http://broker:9464", True),
        ({LISTEN: "0.0.0.0:9464", PROTOCOL: "HTTPS"}, "https://broker:9464", True),
        ({LISTEN: "[::]:1", PROTOCOL: "HTTP"}, "http://broker:1", True),
        ({LISTEN: "broker:1"}, "http://broker:1", True),
        ({LISTEN: "127.0.0.1:1"}, "http://127.0.0.1:1", False),
        ({LISTEN: "[fe80::1]:1"}, "http://[fe80::1]:1", False),
    ],
)
async def test_the_token_goes_to_the_broker_itself_and_to_no_other_host(settings, url, has_token):
    found = await find(Said(settings), HttpAccess(token=TOKEN))
    assert (found.url, found.token) == (url, TOKEN if has_token else None)
    assert TOKEN not in repr(found)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (Said({}), "Kafka does not expose"),
        (Said({LISTEN: None}), "no HTTP port"),
        (Said({LISTEN: "nonsense"}), "invalid HTTP port"),
        (Said({LISTEN: "a b:1"}), "invalid HTTP port"),
        (Said(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)), "does not show this user"),
        (Said({}, serves=False), "does not expose its segments"),
    ],
)
async def test_what_is_not_told_is_a_sentence(said, sentence):
    with pytest.raises(NoSegments, match=sentence):
        await find(said, HttpAccess())


@pytest.mark.parametrize(
    "url", ["", "broker:9464", "ftp://a", "http://", "http://a:b", "http://u:secret@a", "http://a b", "http://a:0"]
)
def test_an_address_that_is_none(url):
    with pytest.raises(HttpUrlError) as caught:
        HttpAccess(url)
    assert "secret" not in str(caught.value)


def test_an_address_and_a_token():
    access = HttpAccess("https://a/under/", TOKEN)
    assert (access.scheme, access.host, access.port, access.path) == ("https", "a", 443, "/under")
    assert access.authorization == f"Bearer {TOKEN}"
    assert (HttpAccess("http://[::1]").host, HttpAccess("http://[::1]").port) == ("::1", 80)
    for token in ("", "a b", "a\r\nX: y", "\u00e4"):
        with pytest.raises(HttpUrlError, match="printable"):
            HttpAccess("http://a", token)
