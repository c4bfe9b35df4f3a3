"""The manifest of one broker on Kubernetes: its parts fit together, and the broker accepts what the pod sets."""

import re

import pytest
import yaml

from horolog.broker.config.listeners import advertised_addresses, listen_addresses
from horolog.broker.config.settings import Settings, load
from horolog.broker.server.app import STOP_GRACE_S
from tests.container.images import PROJECT

MANIFEST = PROJECT / "config" / "kubernetes" / "broker.yml"
NAMESPACE = "shop"


@pytest.fixture(name="objects")
def _objects():
    return {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text("utf-8"))}


@pytest.fixture(name="pod")
def _pod(objects):
    return objects["StatefulSet"]["spec"]["template"]


@pytest.fixture(name="settings")
def _settings(pod) -> Settings:
    (container,) = pod["spec"]["containers"]
    given = {one["name"]: one.get("value", NAMESPACE) for one in container["env"]}
    given = {name: re.sub(r"\$\((\w+)\)", lambda found: given[found[1]], value) for name, value in given.items()}
    settings, warnings = load(None, given, {})
    assert warnings == []
    return settings


def test_one_pod_is_behind_the_address_that_the_broker_advertises(objects, pod, settings):
    service, spec = objects["Service"], objects["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    assert service["spec"]["selector"] == spec["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert spec["serviceName"] == service["metadata"]["name"]
    advertised = advertised_addresses(settings, "pod")["PLAINTEXT"]
    assert advertised.host == f"{service['metadata']['name']}.{NAMESPACE}.svc"
    assert [one["port"] for one in service["spec"]["ports"]] == [advertised.port]
    assert [one.port for one in listen_addresses(settings)] == [advertised.port]


def test_the_data_folder_is_on_the_volume_below_its_mount_point(objects, pod, settings):
    (container,) = pod["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    (claim,) = objects["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert mount["name"] == claim["metadata"]["name"]
    assert settings.log_dirs.startswith(f"{mount['mountPath']}/")
    user = re.search(r"useradd --uid (\d+) --gid (\d+)", (PROJECT / "Dockerfile").read_text("utf-8"))
    assert user is not None
    context = pod["spec"]["securityContext"]
    assert [str(context[key]) for key in ("runAsUser", "fsGroup")] == [user[1], user[2]]


def test_probes_ask_the_http_port_and_the_pod_has_time_to_stop(pod, settings):
    (container,) = pod["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [one["path"] for one in probes] == ["/health", "/health", "/ready"]
    assert {ports[one["port"]] for one in probes} == {int(settings.horolog_http_listen.rpartition(":")[2])}
    assert pod["spec"]["terminationGracePeriodSeconds"] > STOP_GRACE_S
