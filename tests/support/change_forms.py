"""Forms of the console's changes as a browser sends them."""

import re
from html import unescape
from typing import Any

import httpx

from tests.support.console_browser import ORIGIN


async def sent(page: httpx.AsyncClient, kind: str, **fields: str) -> httpx.Response:
    """The response to a form."""
    data = {"csrf": page.application.sessions.everybody.csrf, **fields}
    return await page.post(f"/change/{kind}", data=data, headers=ORIGIN)


async def confirmed(
    page: httpx.AsyncClient, kind: str, plan: httpx.Response, confirm: Any = "", **typed: str
) -> httpx.Response:
    """The response to the second form of a page with a plan."""
    form = plan.text.partition('<input type="hidden" name="step"')[2]
    seen = re.search(r'name="seen" value="(\w+)"', form)[1]
    fields = dict(re.findall(r'<textarea hidden name="([\w-]+)">\n(.*?)</textarea>', form, re.DOTALL))
    values = {name: unescape(value) for name, value in fields.items()}
    return await sent(page, kind, **values, **typed, step="apply", seen=seen, confirm=confirm)
