"""`kafka-console-consumer`: records as lines, from where and up to what the options say."""

import asyncio

import pytest

from horolog.client.producing.producer import Producer


@pytest.fixture(scope="module", autouse=True)
def records(scripts):
    """Three records in partition 0 of t, two in partition 1, one in u."""

    async def write():
        async with Producer(scripts.address) as producer:
            for number in range(5):
                await producer.send("t", b"v%d" % number, b"k", partition=number % 2)
            await producer.send("u", b"other")

    scripts.broker.create_topic("u")
    asyncio.run(write())


@pytest.fixture
def consume(scripts):
    def run(*words):
        return scripts.run("kafka-console-consumer", *words)

    return run


def test_from_the_beginning(consume):
    ended = consume("--topic", "t", "--from-beginning", "--max-messages", "5")
    assert ended.code == 0
    assert sorted(ended.lines) == ["v0", "v1", "v2", "v3", "v4"]
    assert ended.err == "Processed a total of 5 messages\n"


def test_properties_say_what_is_printed(consume):
    words = ("--property", "print.key=true", "--formatter-property", "print.offset=true")
    ended = consume("--topic", "t", "--partition", "0", "--offset", "1", "--max-messages", "1", *words)
    assert ended.lines == ["Offset:1\tk\tv2"]


@pytest.mark.parametrize(("offset", "values"), [("earliest", ["v0", "v2", "v4"]), ("2", ["v4"]), ("latest", [])])
def test_a_partition_is_read_from_an_offset_until_nothing_comes(consume, offset, values):
    ended = consume("--topic", "t", "--partition", "0", "--offset", offset, "--timeout-ms", "100")
    assert ended.lines == values


def test_topics_may_be_those_that_match(consume):
    ended = consume("--include", "t|u", "--from-beginning", "--timeout-ms", "150")
    assert len(ended.lines) == 6
    ended = consume("--include", "none.*")
    assert (ended.code, "no topic matches 'none.*'" in ended.err) == (1, True)


@pytest.mark.parametrize("subscribed", [("--topic", "t"), ("--include", "t")])
def test_a_group_goes_on_where_it_was(consume, subscribed):
    group = ("--group", f"g{subscribed[0]}")
    first = consume(*subscribed, *group, "--from-beginning", "--max-messages", "2")
    rest = consume(
        *subscribed, "--consumer-property", f"group.id={group[1]},auto.offset.reset=earliest", "--max-messages", "3"
    )
    assert sorted(first.lines + rest.lines) == ["v0", "v1", "v2", "v3", "v4"]


def test_a_topic_that_is_not_there_is_made(consume, scripts):
    assert consume("--topic", "made", "--timeout-ms", "20").lines == []
    assert "made" in scripts.ask(lambda admin: admin.topics())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--topic", "t", "--partition", "0", "--group", "g"), "--partition needs one --topic, and no group"),
        (("--include", "t", "--partition", "0"), "--partition needs one --topic"),
        (("--topic", "t", "--offset", "5"), "--offset needs --partition, and cannot be used with --from-beginning"),
        (("--topic", "t", "--partition", "0", "--offset", "1", "--from-beginning"), "--offset needs --partition"),
        (
            ("--topic", "t", "--partition", "0", "--offset", "-1"),
            "--offset -1: expected earliest, latest or a number of 0 or more",
        ),
        (("--topic", "t", "--partition", "7", "--from-beginning"), "topic t has no partition 7"),
        (
            ("--topic", "t", "--consumer-property", "auto.offset.reset=soon"),
            "auto.offset.reset=soon: expected earliest, latest or none",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(consume, words, said):
    ended = consume(*words)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
