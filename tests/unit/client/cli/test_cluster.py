"""`horolog cluster` shows brokers and what they lead, whichever settings this user may see."""

import io

from horolog.client.admin.admin import Admin
from horolog.client.cli import cluster
from horolog.client.values.errors import error_of
from horolog.client.wire.cluster_view import ClusterView
from horolog.commands.console import Console
from horolog.commands.errors import CommandError
from horolog.protocol.errors import ErrorCode


class Config:
    def __init__(self, value):
        self.value = value


def test_a_broker_leads_its_partitions(run, topic):
    found = run("cluster", "-o", "json").json
    assert found["cluster_id"]
    assert (found["store"], found["offline"]) == (None, 0)
    (broker,) = found["brokers"]
    assert broker["controller"]
    assert broker["leads"] == broker["replicas"] >= 1
    shown = run("cluster")
    assert shown.out.splitlines()[0] == f"cluster {found['cluster_id']}"
    assert shown.out.splitlines()[1].split() == ["BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS"]
    assert f"{broker['host']}:{broker['port']}" in shown.out


def test_it_is_shown_again_until_something_ends_it(run, monkeypatch):
    look, looks = cluster._look, []

    async def twice(admin):
        looks.append(await look(admin))
        if len(looks) == 3:
            raise CommandError("that is enough")
        return looks[-1]

    monkeypatch.setattr(cluster, "_look", twice)
    ended = run("cluster", "--watch", "--every", "1ms", "-o", "json")
    assert (ended.code, [one["cluster_id"] for one in ended.lines]) == (1, [looks[0]["cluster_id"]] * 2)


async def test_the_store_is_a_setting_that_may_be_hidden(monkeypatch):
    answers = []

    async def describe_configs(self, kind, name):
        assert (kind, name) == ("broker", "1")
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    monkeypatch.setattr(Admin, "describe_configs", describe_configs)
    admin = Admin("127.0.0.1:1")
    expected = {"file:///store": {cluster.STORE: Config("file:///store")}, "": {cluster.STORE: Config("")}, "-": {}}
    for text, configs in expected.items():
        answers[:] = [configs]
        assert await cluster._store(admin, 1) == (text if text.startswith("file") else None)
    answers[:] = [error_of(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]
    assert await cluster._store(admin, 1) is None


def test_partitions_are_counted_by_broker():
    class Partition:
        def __init__(self, leader, replicas):
            self.leader, self.replicas = leader, replicas

    class Topic:
        def __init__(self, *partitions):
            self.partitions = dict(enumerate(partitions))

    view = ClusterView()
    view.topics = {"t": Topic(Partition(1, (1, 2)), Partition(2, (2, 1)), Partition(-1, (2,)))}
    leads, replicas = cluster.counts(view)
    assert (dict(leads), dict(replicas)) == ({1: 1, 2: 1, -1: 1}, {1: 2, 2: 3})


def test_partitions_without_a_leader_are_a_warning():
    console = Console(io.StringIO(), io.StringIO(), environ={})
    broker = {"broker": 1, "host": "h", "port": 9, "rack": "a", "controller": True, "leads": 2, "replicas": 3}
    cluster._show({"cluster_id": None, "store": "s3://b/p", "brokers": [broker], "offline": 1}, console, watches=False)
    lines = console.out.getvalue().splitlines()
    assert (lines[0], lines[2].split()) == ("cluster -, over s3://b/p", ["1", "(controller)", "h:9", "a", "2", "3"])
    assert "1 partition without a leader" in console.err.getvalue()
