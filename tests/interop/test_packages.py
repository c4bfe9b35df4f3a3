"""The packages for other languages, each in a project of its own: a broker starts for a test, and ends with it or with its process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.schemas import faults
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

PACKAGES = PROJECT / "packages"
COMMAND = [sys.executable, "-m", "horolog"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}
WITHIN_S = 100

NODE = """
const { startBroker } = require('horolog-test-broker')
const [way, ...command] = process.argv.slice(2)

async function main() {
  if (way === 'wrong') {
    await startBroker({ command, settings: { 'num.partitions': 'many' } }).catch((error) => console.log(error.message))
    return
  }
  const broker = await startBroker({ command, topics: { orders: 3 }, clock: '2026-11-17 10:05', registry: true })
  console.log(broker.pid)
  if (way === 'killed') setInterval(() => {}, 1000)
  if (way !== 'closed') return
  await broker.advance('3 days')
  const { time } = await broker.call('GET', '/clock')
  console.log(JSON.stringify({ time, topics: await broker.call('GET', '/topics') }))
  await broker.stop()
}

main()
"""

GO = """
package project

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"horolog.test/testbroker"
)

func TestBroker(t *testing.T) {
	way, command := os.Getenv("WAY"), strings.Split(os.Getenv("COMMAND"), "\\n")
	if way == "wrong" {
		_, err := testbroker.Run(testbroker.Options{Command: command, Settings: map[string]string{"num.partitions": "many"}})
		fmt.Println(err)
		return
	}
	broker := testbroker.Start(t, testbroker.Options{
		Topics: map[string]int{"orders": 3}, Clock: "2026-11-17 10:05", Registry: true, Command: command,
	})
	fmt.Println(broker.PID)
	if way == "killed" {
		time.Sleep(time.Hour)
	}
	if way != "closed" {
		return
	}
	var clock struct{ Time string }
	topics := map[string]int{}
	for _, err := range []error{
		broker.Advance("3 days"), broker.Call("GET", "/clock", nil, &clock), broker.Call("GET", "/topics", nil, &topics),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("{\\"time\\": %q, \\"topics\\": {\\"orders\\": %d}}\\n", clock.Time, topics["orders"])
}
"""

JAVA = """
import horolog.testing.TestBroker;

public final class Main {
    public static void main(String[] words) throws Exception {
        String[] command = java.util.Arrays.copyOfRange(words, 1, words.length);
        if (words[0].equals("wrong")) {
            try {
                TestBroker.builder().command(command).set("num.partitions", "many").start();
            } catch (IllegalStateException error) {
                System.out.println(error.getMessage());
            }
            return;
        }
        TestBroker broker = TestBroker.builder()
            .command(command).topic("orders", 3).clock("2026-11-17 10:05").registry().start();
        System.out.println(broker.pid());
        if (words[0].equals("killed")) {
            Thread.sleep(3_600_000);
        }
        if (words[0].equals("closed")) {
            broker.advance("3 days");
            String topics = broker.call("GET", "/topics", "");
            String clock = broker.call("GET", "/clock", "");
            System.out.println("{\\"topics\\": " + topics.trim() + ", " + clock.trim().substring(1));
            broker.close();
        }
    }
}
"""


def done(command: list[str], folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def node_project(folder: Path) -> list[str]:
    """The package as npm packs it, installed beside a program."""
    packed = json.loads(done(["npm", "pack", "--json", f"--pack-destination={folder}", str(PACKAGES / "node")], folder))
    (folder / "package.json").write_text('{"name": "project", "private": true}')
    done(["npm", "install", "--offline", "--no-audit", "--no-fund", f"./{packed[0]['filename']}"], folder)
    (folder / "main.js").write_text(NODE)
    return ["node", "main.js"]


def go_project(folder: Path) -> list[str]:
    replaced = f"replace horolog.test/testbroker => {PACKAGES / 'go'}"
    (folder / "go.mod").write_text(
        f"module project\n\ngo 1.21\n\nrequire horolog.test/testbroker v0.0.0\n\n{replaced}\n"
    )
    (folder / "main_test.go").write_text(GO)
    done(["go", "vet", "./..."], folder)
    done(["go", "test", "-c", "-o", "main", "."], folder)
    return ["./main", "-test.v"]


def java_project(folder: Path) -> list[str]:
    (folder / "Main.java").write_text(JAVA)
    sources = [str(one) for one in (PACKAGES / "java").rglob("*.java")]
    done(["javac", "--release", "11", "-Xlint:all", "-Werror", "-d", "classes", "Main.java", *sources], folder)
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "classes", "Main"]


PROJECTS = [
    pytest.param(node_project, marks=pytest.mark.node, id="node"),
    pytest.param(go_project, marks=pytest.mark.go, id="go"),
    pytest.param(java_project, marks=pytest.mark.java, id="java"),
]


def start(project: list[str], way: str, folder: Path) -> subprocess.Popen[str]:
    """The program with the way of its end: words for Node.js and Java, the environment for a test in Go."""
    words = [] if project[0] == "./main" else [way, *COMMAND]
    environment = {**ENVIRONMENT, "WAY": way, "COMMAND": "\n".join(COMMAND)}
    return subprocess.Popen([*project, *words], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def number_in(program: subprocess.Popen[str]) -> int:
    """The process id of the broker, which is the first line that is a number."""
    assert program.stdout is not None
    return next(int(line) for line in program.stdout if line.strip().isdigit())


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.timeout(300)
@pytest.mark.parametrize("made", PROJECTS)
def test_a_broker_serves_a_test_and_ends_with_it(made, tmp_path: Path) -> None:
    project = made(tmp_path)
    with start(project, "closed", tmp_path) as program:
        pid = number_in(program)
        found = json.loads(next(line for line in program.stdout if line.startswith("{")))
        program.stdout.read()
        assert program.wait(WITHIN_S) == 0
    assert (found["time"], found["topics"]) == ("2026-11-20T10:05:00.000+00:00", {"orders": 3})
    assert is_gone(pid)

    with start(project, "left open", tmp_path) as program:
        pid = number_in(program)
        program.stdout.read()
        assert program.wait(WITHIN_S) == 0
    wait_until(lambda: is_gone(pid))

    with start(project, "killed", tmp_path) as program:
        pid = number_in(program)
        program.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(pid))

    with start(project, "wrong", tmp_path) as program:
        said, _ = program.communicate(timeout=WITHIN_S)
    assert "the broker did not start: " in said
    assert "num.partitions" in said


# -- the action


def run_action(folder: Path, arguments: str, command: str = " ".join(COMMAND)) -> tuple[int, Mapping[str, str], str]:
    output = folder / "output"
    output.touch()
    environment = {"GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(folder), "ARGUMENTS": arguments, "HOROLOG": command}
    ended = subprocess.run(
        [str(PACKAGES / "action" / "start.sh")],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    found = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return ended.returncode, found, ended.stdout + ended.stderr


def test_the_action_starts_a_broker_that_outlives_its_step(tmp_path: Path) -> None:
    code, found, said = run_action(tmp_path, "--topic orders:3 --registry")
    assert (code, list(found)) == (0, ["bootstrap", "control", "registry"]), said
    with urlopen(f"{found['control']}/topics") as response:
        assert json.load(response) == {"orders": 3}
    with urlopen(f"{found['control']}/stop", b"") as response:
        assert response.status == 200
    assert said.startswith("healthy: 1 broker, 1 topic, 3 partitions")


def test_the_action_fails_with_the_output_of_a_broker_that_does_not_start(tmp_path: Path) -> None:
    code, found, said = run_action(tmp_path, "--set num.partitions=many")
    assert (code, found) == (1, {})
    assert "num.partitions" in said
    assert "::error::horolog did not start" in said


def test_the_action_has_the_form_that_the_service_reads() -> None:
    assert faults(PACKAGES / "action" / "action.yml", "github-actions") == ""
