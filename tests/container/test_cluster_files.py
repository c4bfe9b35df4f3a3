"""The files for three brokers over a bucket: schemas accept them, and the broker accepts what they set."""

import re

import pytest
import yaml

from horolog.broker.config.listeners import advertised_addresses, listen_addresses
from horolog.broker.config.settings import load
from horolog.broker.server.app import STOP_GRACE_S
from horolog.broker.server.store_run import LEAVES_WITHIN_S
from tests.container.images import PROJECT
from tests.support.schemas import faults

COMPOSE = PROJECT / "docker-compose.cluster.yml"
KUBERNETES = PROJECT / "config" / "kubernetes" / "cluster.yml"
STOPS_WITHIN_S = LEAVES_WITHIN_S + STOP_GRACE_S


def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def settings_of(environment):
    settings, warnings = load(None, {key: str(value) for key, value in environment.items()}, {})
    assert warnings == []
    return settings


def test_the_schema_of_compose_accepts_it():
    assert faults(COMPOSE, "compose-spec") == ""


def test_three_brokers_share_one_place_under_numbers_and_ports_of_their_own():
    brokers = {name: one for name, one in services().items() if name != "store"}
    settings = {name: settings_of(one["environment"]) for name, one in brokers.items()}
    assert sorted(one.node_id for one in settings.values()) == [1, 2, 3]
    assert len({(one.horolog_store, one.horolog_store_endpoint) for one in settings.values()}) == 1
    ports = set()
    for name, one in settings.items():
        inside, outside = advertised_addresses(one, name)["INSIDE"], advertised_addresses(one, name)["OUTSIDE"]
        assert (inside.host, inside.port) == (name, listen_addresses(one)[0].port)
        (published,) = brokers[name]["ports"]
        assert published == f"127.0.0.1:{outside.port}:{listen_addresses(one)[1].port}"
        ports.add(outside.port)
    assert len(ports) == 3


def test_brokers_wait_for_a_store_that_is_healthy_and_get_its_keys():
    found = services()
    store = found.pop("store")
    bucket = settings_of(found["horolog1"]["environment"]).horolog_store.split("/")[2]
    assert [one.split(":")[1] for one in store["volumes"]] == [f"/objects/{bucket}", "/metadata"]
    assert store["command"][-1] == "/objects"
    assert store["healthcheck"]["test"][-1].endswith(f"{store['command'][1]}{store['command'][3]}")
    for one in found.values():
        assert one["depends_on"] == {"store": {"condition": "service_healthy"}}
        assert one["environment"]["AWS_ACCESS_KEY_ID"] == store["environment"]["ROOT_ACCESS_KEY"]
        assert one["environment"]["AWS_SECRET_ACCESS_KEY"] == store["environment"]["ROOT_SECRET_KEY"]
        assert int(one["stop_grace_period"].rstrip("s")) > STOPS_WITHIN_S


def test_the_image_has_the_client_of_stores():
    locked = (PROJECT / "requirements" / "store.lock").read_text()
    assert "requirements/store.lock" in (PROJECT / "Dockerfile").read_text()
    names = {
        lock: dict(re.findall(r"^([\w-]+)==(\S+)", (PROJECT / "requirements" / lock).read_text(), re.MULTILINE))
        for lock in ("runtime.lock", "store.lock", "dev.lock")
    }
    assert "obstore==" in locked
    assert names["runtime.lock"].items() <= names["store.lock"].items() <= names["dev.lock"].items()


@pytest.fixture(name="objects")
def _objects():
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(KUBERNETES.read_text())}


@pytest.fixture(name="pod")
def _pod(objects):
    return objects["StatefulSet", "horolog"]["spec"]["template"]


def test_all_of_kubernetes_selects_the_brokers(objects, pod):
    labels, spec = pod["metadata"]["labels"], objects["StatefulSet", "horolog"]["spec"]
    selectors = [
        spec["selector"]["matchLabels"],
        objects["PodDisruptionBudget", "horolog"]["spec"]["selector"]["matchLabels"],
    ]
    selectors += [one["spec"]["selector"] for (kind, _), one in objects.items() if kind == "Service"]
    assert selectors == [labels] * 4
    assert objects["PodDisruptionBudget", "horolog"]["spec"]["maxUnavailable"] < spec["replicas"]
    headless = objects["Service", spec["serviceName"]]["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)


def test_the_broker_accepts_what_a_pod_sets(objects, pod):
    (container,) = pod["spec"]["containers"]
    values = {"POD_NAME": "horolog-2", "POD_NAMESPACE": "default", "KAFKA_NODE_ID": "2"}
    given = {one["name"]: values.get(one["name"], one.get("value")) for one in container["env"]}
    assert None not in given.values()
    for name, value in given.items():
        given[name] = re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], value)
    settings = settings_of(given)
    assert (settings.node_id, settings.horolog_store) == (2, "s3://bucket/prefix")
    advertised = advertised_addresses(settings, "pod")["PLAINTEXT"]
    service = objects["StatefulSet", "horolog"]["spec"]["serviceName"]
    assert (advertised.host, advertised.port) == (f"horolog-2.{service}.default.svc", 9092)
    (mount,) = container["volumeMounts"]
    assert settings.log_dirs.startswith(mount["mountPath"])
    assert container["envFrom"] == [{"secretRef": {"name": "horolog-store"}}]
    assert ("Secret", "horolog-store") in objects


def test_probes_ask_what_the_broker_serves_and_a_pod_has_time_to_stop(pod):
    (container,) = pod["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    given = {one["name"]: one.get("value") for one in container["env"]}
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: one["path"] for kind, one in probes.items()} == {
        "startup": "/health",
        "liveness": "/health",
        "readiness": "/ready",
    }
    assert all(given["KAFKA_HOROLOG_HTTP_LISTEN"].endswith(f":{ports[one['port']]}") for one in probes.values())
    assert pod["spec"]["terminationGracePeriodSeconds"] > STOPS_WITHIN_S
