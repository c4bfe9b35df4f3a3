"""The compose file is one that compose understands, and says the same as the image."""

import yaml

from horolog.broker.config.listeners import listen_addresses
from horolog.broker.config.settings import load
from horolog.broker.security.listener_protection import of
from tests.container.images import PROJECT
from tests.support.schemas import faults

COMPOSE = PROJECT / "docker-compose.yml"


def test_the_schema_of_compose_accepts_it(tmp_path):
    assert faults(COMPOSE, "compose-spec") == ""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(COMPOSE.read_text().replace("environment:", "enviroment:"))
    assert "enviroment" in faults(wrong, "compose-spec")


def test_ports_volume_and_health_check_are_the_images():
    service = yaml.safe_load(COMPOSE.read_text())["services"]["horolog"]
    text = (PROJECT / "Dockerfile").read_text()
    exposed = set(next(line for line in text.splitlines() if line.startswith("EXPOSE")).split()[1:])
    assert {port.split(":")[-1] for port in service["ports"]} == exposed
    volume = next(line for line in text.splitlines() if line.startswith("VOLUME")).split()[1]
    assert [one.split(":")[1] for one in service["volumes"]] == [volume]
    assert all(word in text for word in service["healthcheck"]["test"])
    assert "USER horolog" in text


def test_its_closed_form_is_one_too(tmp_path):
    """Without the marks of comments, in place of the open form."""
    closed, commented = tmp_path / "closed.yml", "      # KAFKA_"
    lines = COMPOSE.read_text().splitlines()
    keys = {line.split(":")[0].strip(" #") for line in lines if line.startswith(commented)}
    assert len(keys) > 5
    kept = [line for line in lines if line.startswith(commented) or line.split(":")[0].strip() not in keys]
    closed.write_text(
        "\n".join(line.replace("      # KAFKA_", "      KAFKA_").replace("# - ./cert", "- ./cert") for line in kept)
    )
    assert faults(closed, "compose-spec") == ""
    service = yaml.safe_load(closed.read_text())["services"]["horolog"]
    assert service["volumes"][-1] == "./certificates:/certificates:ro"
    environ = {key: str(value) for key, value in service["environment"].items()}
    settings, warnings = load(None, environ, {})
    assert warnings == []
    assert all(of(settings, address).asks_who for address in listen_addresses(settings))
