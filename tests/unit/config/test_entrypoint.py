"""What the image's entry point fills in, as a program with a broker's command that only shows its settings."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "config" / "container" / "entrypoint.sh"


def settings(folder, **environ):
    """The variables with which it runs the broker."""
    program = folder / "horolog"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
    found = kept | environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", SCRIPT, "serve"], env=found, capture_output=True, text=True, timeout=30, check=True
    )
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines() if line.startswith("KAFKA_"))


@pytest.mark.parametrize(
    ("given", "listens"),
    [
        ({}, "127.0.0.1:9464"),
        ({"KAFKA_HOROLOG_HTTP_TOKEN": ""}, "127.0.0.1:9464"),
        ({"KAFKA_HOROLOG_HTTP_TOKEN": "a secret of mine"}, "0.0.0.0:9464"),
        ({"KAFKA_CFG_HOROLOG_HTTP_TOKEN": "a secret of mine"}, "0.0.0.0:9464"),
        ({"KAFKA_HOROLOG_HTTP_LISTEN": "0.0.0.0:9465"}, "0.0.0.0:9465"),
        ({"KAFKA_HOROLOG_HTTP_LISTEN": ""}, ""),
        ({"KAFKA_CFG_HOROLOG_HTTP_LISTEN": "0.0.0.0:1"}, None),
    ],
)
def test_metrics_are_told_outside_of_the_container_to_who_brings_a_token(tmp_path, given, listens):
    found = settings(tmp_path, **given)
    assert found.get("KAFKA_HOROLOG_HTTP_LISTEN") == listens
    assert "KAFKA_HOROLOG_HTTP_TOKEN" not in found or found["KAFKA_HOROLOG_HTTP_TOKEN"]


def test_the_image_itself_opens_nothing():
    text = (SCRIPT.parents[2] / "Dockerfile").read_text()
    assert "HTTP_LISTEN" not in text
