"""The words of an address are read in one place, and what makes no sense is refused in a sentence."""

import pytest
from starlette.requests import Request

from horolog.client.values.errors import ConnectionFailed, KafkaError, error_of
from horolog.client.wire.cluster_view import TopicView
from horolog.console.options import Options, clusters_of
from horolog.console.roles import Role
from horolog.console.sessions import Session
from horolog.console.visits import Desk, Refused, Visit, sentence_of, topic_of
from horolog.protocol.errors import ErrorCode

NOW = 1_700_000_000_000


class Clock:
    def wall_ms(self):
        return NOW


def visit(query="", clusters=("a:1", "b:2")):
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": [], "state": {}}
    return Visit(Desk(Options(clusters_of(list(clusters), None)), None, Clock(), None, None), Request(scope))


def test_the_first_cluster_is_meant_unless_another_is_named():
    assert visit().cluster.name == "a:1"
    assert visit("cluster=b:2").cluster.name == "b:2"
    with pytest.raises(Refused, match="no cluster 'c'") as refused:
        _ = visit("cluster=c").cluster
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("query", "ms"),
    [("at=@1600000000000", 1_600_000_000_000), ("at=1600000000000", 1_600_000_000_000), ("at=1h", NOW - 3_600_000)],
)
def test_times_are_of_the_grammar_or_plain_milliseconds(query, ms):
    assert visit(query).time("at").ms == ms
    assert visit().time("at") is None


@pytest.mark.parametrize("query", ["at=soon", "at=99999999999999999999999"])
def test_other_times_are_refused(query):
    with pytest.raises(Refused, match="at: "):
        visit(query).time("at")


def test_ranges_are_those_of_the_command_line():
    found = visit("at=@5000ms..%2B5m").range("at")
    assert (found.since_ms, found.until_ms) == (5000, 305_000)
    assert visit("at=1h").range("at") is None
    assert visit().range("at") is None
    assert visit("at=earliest..now").range("at").since_ms is None


@pytest.mark.parametrize(
    ("query", "said"),
    [("at=1h..", "both sides"), ("at=1h..2h", "not after the start"), ("at=1h..latest", "is not a time")],
)
def test_other_ranges_are_refused(query, said):
    with pytest.raises(Refused, match=f"at: .*{said}"):
        visit(query).range("at")


@pytest.mark.parametrize("text", ["x", "-1", "99", "1" * 30])
def test_numbers_have_bounds(text):
    assert visit("n=7").number("n", 1, 0, 9) == 7
    assert visit().number("n", 5) == 5
    with pytest.raises(Refused, match="from 0 to 9"):
        visit(f"n={text}").number("n", 1, 0, 9)


def test_words_are_not_endless():
    with pytest.raises(Refused, match="longer than"):
        visit("filter=" + "x" * 501).text("filter")


def test_zones():
    assert str(visit("tz=Europe/Berlin").zone) == "Europe/Berlin"
    assert visit("tz=Europe/Berlin").zone_name == "Europe/Berlin"
    assert visit().zone_name == "UTC"
    with pytest.raises(Refused, match="tz: "):
        _ = visit("tz=Nowhere/City").zone


def test_links_keep_the_cluster_and_the_zone():
    assert visit("cluster=b:2&tz=UTC&x=y").link("/topic", name="t") == "/topic?cluster=b%3A2&tz=UTC&name=t"
    assert visit("", ["a:1"]).link("/") == "/"


def test_a_page_opens_at_its_moment():
    assert visit("", ["a:1"]).link("/moment", topic="t", at=5) == "/moment?topic=t&at=5#moment"
    assert visit("", ["a:1"]).link("/moment") == "/moment"


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("soonish", "soonish"),
        (" 3h ", "3h"),
        ("1700000000000", "2023-11-14T22:13:20Z"),
        ("@1700000000005ms", "2023-11-14T22:13:20.005Z"),
        ("@0ms..@1700000000000ms", "1970-01-01T00:00:00Z..2023-11-14T22:13:20Z"),
        ("@1700000000", "@1700000000"),
        ("10:05..+5m", "10:05..+5m"),
    ],
)
def test_times_that_links_have_as_numbers_are_times_in_their_fields(typed, shown):
    assert visit(f"at={typed.replace('+', '%2B')}").typed("at") == shown
    assert visit().typed("at") == ""


def test_refusals_of_fields_are_kept_for_their_page():
    found = visit("at=soon&n=x")
    with found.reading("at"):
        found.time("at")
    with found.reading("at", "n"):
        found.number("n", 1)
    assert list(found.wrong) == ["at", "n"]
    assert found.status == 400
    with pytest.raises(Refused, match="tz"), found.reading("at"):
        raise Refused("tz: no", field="tz")


class Sessions:
    """Whose clients are told by whom and of which cluster they are."""

    def client(self, session, cluster):
        return session, cluster.name


def in_session(query=""):
    found = visit(query)
    found.desk = Desk(found.desk.options, Sessions(), Clock(), None, None)
    found.request.scope["state"]["session"] = "of alice"
    return found


def test_a_client_is_of_the_session_and_the_cluster():
    assert in_session("cluster=b:2").client == ("of alice", "b:2")
    other = in_session()
    assert other.client_of(other.cluster_named("b:2")) == ("of alice", "b:2")
    unknown = visit()
    unknown.request.scope["state"]["session"] = None
    with pytest.raises(AssertionError, match="the console requires a login"):
        _ = unknown.session


def test_a_page_has_its_frame_and_what_it_was_given():
    answer = visit("cluster=b:2&tz=Asia/Tokyo").page("error.html", 404, sentence="<there> is none")
    text = answer.body.decode()
    assert answer.status_code == 404
    assert "&lt;there&gt; is none" in text
    assert "tz=Asia%2FTokyo" in text


class View:
    def __init__(self, **topics):
        self.topics = topics


class Client:
    """One that knows of some topics, and is told of others when it asks."""

    def __init__(self, known, told):
        self.view, self._told = View(**known), View(**told)

    async def metadata(self):
        self.view = self._told
        return self.view

    async def withheld(self, name):
        return None if name != "secret" else error_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic=name)


def topic(name, error_code=0):
    return TopicView(name, b"", internal=False, partitions={}, error_code=error_code)


async def test_a_topic_that_is_known_is_not_asked_for_again():
    there = topic("orders")
    assert await topic_of(Client({"orders": there}, {}), "orders") is there


async def test_a_new_topic_is_found_and_one_alike_is_named():
    there = topic("orders")
    assert await topic_of(Client({"orders": topic("orders", 3)}, {"orders": there}), "orders") is there
    with pytest.raises(Refused, match="do you mean 'orders'") as refused:
        await topic_of(Client({}, {"orders": there}), "oders")
    assert refused.value.status == 404
    with pytest.raises(Refused, match=r"no topic 'x'$"):
        await topic_of(Client({}, {"orders": there}), "x")
    with pytest.raises(KafkaError, match="not authorized for topic 'secret'"):
        await topic_of(Client({}, {"orders": there}), "secret")
    with pytest.raises(Refused, match="names no topic"):
        await topic_of(Client({}, {}), "")


@pytest.mark.parametrize(
    ("error", "said", "status"),
    [
        (Refused("no such page", 404), "no such page", 404),
        (TimeoutError(), "the broker took longer than", 504),
        (ConnectionFailed("refused"), "no answer from b:2: refused", 502),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "(UNKNOWN_TOPIC_OR_PARTITION)", 404),
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "(TOPIC_AUTHORIZATION_FAILED)", 403),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), "(KAFKA_STORAGE_ERROR)", 502),
    ],
)
def test_failures_are_said_in_a_sentence(error, said, status):
    sentence, found = sentence_of(visit("cluster=b:2"), error)
    assert said in sentence
    assert found == status


def test_roles_and_the_console_decide_about_changes():
    session = Session("id", "ann", "", 0.0, 0.0, role=Role.OPERATOR)
    for allows in (True, False):
        found = visit()
        found.desk = Desk(Options(clusters_of(["a:1"], None), allow_changes=allows), None, Clock(), None, None)
        found.request.scope["state"]["session"] = session
        assert (found.may("produce"), found.may("acl-add")) == (allows, False)
        said = "your role is operator; this needs the role admin" if allows else "this console changes nothing"
        with pytest.raises(Refused, match=said) as refused:
            found.must_be_allowed("acl-add")
        assert refused.value.status == 403
        if allows:
            found.must_be_allowed("produce")
