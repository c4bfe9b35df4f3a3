"""The client's guide is true: its programs are run, in order, and print what the page says; so is the example of the front page."""

import asyncio
import re
import subprocess
import sys

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.style import PROJECT

ADDRESS = "127.0.0.1:9092"
BLOCKS = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


async def run(program: str, address: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program.replace(ADDRESS, address),
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert not errors, errors.decode()
    return out.decode()


async def test_the_guide(start_broker: BrokerStarter) -> None:
    broker = start_broker(group__initial__rebalance__delay__ms=0)
    found = BLOCKS.findall((PROJECT / "docs" / "client.md").read_text("utf-8"))
    assert len(found) >= 7
    for program, expected in found:
        assert ADDRESS in program
        assert await run(program, broker.address) == expected, program


@pytest.mark.timeout(60)
async def test_the_front_page(broker: BrokerProcess) -> None:
    text = (PROJECT / "README.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(import asyncio\nfrom client.*?)```", text, re.DOTALL)
    assert len([line for line in program.splitlines() if line.strip()]) <= 11
    assert "Found(offset=1," in await run(program, broker.address)
