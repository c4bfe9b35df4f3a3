"""Every page and every action in a real browser: by mouse, by keys, on a phone, in the dark, and nothing that axe-core finds fault with."""

import json
import re
import urllib.request
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from horolog import Producer
from horolog.testing import registry_in_thread
from tests.console.conftest import HOSTILE, HOUR, MANY, Console, in_a_thread
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

AXE = PROJECT / "tests" / "vendor" / "axe" / "axe.min.js"
SCRIPTS_AT_MOST = 200_000
PAGES = {
    "now": "/",
    "topic": "/topic?name=orders",
    "partition": "/topic?name=orders&partition=1",
    "moment": "/moment?topic=orders&at=20h&within=2h",
    "beside": "/moment?topic=orders&at=20h&within=1h&other=30h",
    "which": "/moment",
    "follow": "/follow?topic=orders",
    "groups": "/groups",
    "group": "/group?name=billing",
    "reset": "/group/reset?name=billing&topic=orders&to=30h",
    "compare": "/compare?a=orders&b=payments",
    "access": "/access",
    "cluster": "/cluster",
    "transactions": "/transactions?topic=orders",
    "error": "/topic?name=order",
    "change": "/change/topic-setting?name=orders&key=retention.ms",
    "wrong": "/moment?topic=orders&at=soonish&where=value.",
}


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_a_phone(console, page, path, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(console.address + path)
    found = faults_in(page)
    assert found == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    drawn_again(page)
    if scheme == "light":
        assert faults_in(page) == []


@pytest.fixture(scope="module")
def with_registry(filled):
    """A console with a schema registry, so that its bar has all pages, and a subject of two versions."""
    with registry_in_thread() as registry:
        fields = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}]
        for count in (1, 2):
            schema = json.dumps({"type": "record", "name": "Order", "fields": fields[:count]})
            registered = urllib.request.Request(
                f"{registry.url}/subjects/orders-value/versions", json.dumps({"schema": schema}).encode()
            )
            urllib.request.urlopen(registered).close()
        running = Console("-b", filled[0].address, "--registry", registry.url)
        yield running
        running.end()


@pytest.mark.parametrize("path", ["/schemas", "/schemas?subject=orders-value"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_with_the_pages_of_schemas(with_registry, page, path, scheme):
    test_axe_finds_no_fault_and_nothing_is_wider_than_a_phone(with_registry, page, path, scheme)


@pytest.mark.parametrize("width", [900, 1024, 1180, 1280])
def test_the_bar_of_all_pages_stays_in_one_row(with_registry, page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(with_registry.address + "/")
    pages, side = page.locator(".top nav").bounding_box(), page.locator(".top .side").bounding_box()
    assert side["y"] < pages["y"] + pages["height"]
    assert page.locator(".top").bounding_box()["height"] < 60


NOTES_TEXTS = """
  window.drawn = [];
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
    const half = this.measureText(text).width / 2;
    const share = { left: 0, start: 0, center: 1, right: 2, end: 2 }[this.textAlign];
    window.drawn.push([text, x - share * half, x + (2 - share) * half, this.canvas.width]);
    fill.call(this, text, x, ...more);
  };
"""


@pytest.mark.parametrize("width", [390, 700, 1024, 1280])
def test_what_a_chart_writes_is_not_cut_off(console, page, width):
    page.add_init_script(NOTES_TEXTS)
    page.set_viewport_size({"width": width, "height": 800})
    for path in (PAGES["topic"], PAGES["moment"], "/moment?topic=orders&at=20h&within=15m", PAGES["group"]):
        page.goto(console.address + path)
        wait_until(lambda: any(text.startswith("20") for text, *_ in page.evaluate("window.drawn")))  # a date
        drawn_again(page)
        drawn = page.evaluate("window.drawn")
        assert [text for text, start, end, room in drawn if start < -1 or end > room + 1] == []


LINES_OF_WORDS = """
  (boxes) => boxes.map((box) => {
    const text = document.createTreeWalker(box, NodeFilter.SHOW_TEXT).nextNode();
    return [...text.data.matchAll(/\\S+/g)].map((word) => {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      return [word[0], range.getClientRects().length];
    });
  })
"""


@pytest.mark.parametrize("width", [390, 701, 820, 1024])
def test_a_time_among_the_figures_is_not_broken_inside(console, page, width):
    page.set_viewport_size({"width": width, "height": 800})
    for path in (PAGES["topic"], PAGES["group"], "/"):
        page.goto(console.address + path)
        words = [word for box in page.locator(".figures dd time").evaluate_all(LINES_OF_WORDS) for word in box]
        assert len(words) > 0
        assert [word for word, lines in words if lines > 1] == []


def test_a_table_without_rows_has_its_sentence_in_one_line(console, page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(console.address + PAGES["group"])
    sentence = page.get_by_text("The group has no members now.")
    assert sentence.bounding_box()["height"] < 30


def test_charts_and_tables_follow_the_window_at_once(console, page):
    page.goto(console.address + PAGES["topic"])
    page.locator(".u-over").wait_for()
    page.get_by_text("Segments: 3 segments").click()
    table = page.locator("details[open] .scroll")
    for width, does_scroll in ((390, True), (1280, False), (390, True)):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        drawn_again(page)
        assert page.locator(".u-wrap").bounding_box()["width"] == page.locator(".chart").bounding_box()["width"]
        assert table.evaluate("(box) => [box.scrollWidth > box.clientWidth, box.tabIndex === 0]") == [does_scroll] * 2


def drawn_again(page):
    """Charts and tables follow the window in its next frame; the second one comes after that."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def faults_in(page):
    """What axe-core says; it is given to the page by the debugger, for which the content policy makes an exception."""
    page.evaluate(AXE.read_text("utf-8"))
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in result["violations"]]


def test_scripts_are_small_and_nothing_is_loaded_from_elsewhere(console, page):
    responses = []

    def note(response):  # to ask for the body here would let the test go on without it
        responses.append(response)

    page.on("response", note)
    page.goto(console.address + PAGES["topic"])
    page.locator(".u-over").wait_for()  # drawn by the scripts
    page.wait_for_load_state("networkidle")
    assert [one.url for one in responses if not one.url.startswith(console.address)] == []
    scripts = [one.body() for one in responses if one.url.endswith(".js")]
    assert len(scripts) == 3
    assert sum(map(len, scripts)) <= SCRIPTS_AT_MOST


@pytest.mark.parametrize(
    "path",
    [
        "/moment?topic=hostile",
        "/groups",
        f"/group?name={quote(HOSTILE)}",
        f"/?filter={quote(HOSTILE)}",
        f"/follow?topic=hostile&key={quote(HOSTILE)}",
        f"/moment?topic=hostile&key={quote(HOSTILE)}&within=9d",
    ],
)
def test_hostile_values_are_text(console, page, path):
    page.goto(console.address + path)
    page.wait_for_timeout(200)
    assert page.title() != "broken"
    assert page.locator("img").count() == 0
    assert page.locator("main script").count() == 0


def test_now_leads_to_a_topic_and_filters(console, page):
    page.goto(console.address)
    assert "retention of ahead is blocked, partition 0" in page.locator(".troubles").inner_text()
    assert "late" in page.locator("tr", has_text="late").inner_text()
    page.keyboard.press("/")
    page.keyboard.type("orde")
    page.wait_for_url("**filter=orde*")
    assert page.locator("tr[data-row]").count() == 1
    page.get_by_role("link", name="orders", exact=True).click()
    assert page.locator("h1").inner_text() == "orders"


def test_the_timeline_zooms_by_drag_and_by_keys_and_leads_to_the_moment(console, page):
    page.goto(console.address + PAGES["topic"])
    drag(page, 0.4, 0.6)
    page.wait_for_url("**from=*")
    narrow, said = records_said(page), page.locator("#timeline + .note").inner_text()
    assert 60 < narrow < 240
    for name in ("from", "until"):
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+Z", page.locator(f"input[name={name}]").input_value())
    page.locator(".u-over").wait_for()
    page.keyboard.press("-")
    expect(page.locator("#timeline + .note")).not_to_have_text(said)
    assert records_said(page) > narrow
    chart = page.locator("[data-chart]")
    page.locator(".u-over").wait_for()
    chart.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/moment?**")
    assert page.locator("tr[data-row]").count() > 0


def drag(page, start, end):
    """Over a timeline, between two parts of its width."""
    over = page.locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, box["y"] + 40, steps=5)
    page.mouse.up()


def test_segments_lie_below_the_timeline_and_a_partition_is_picked(console, page):
    page.goto(console.address + PAGES["topic"])
    page.locator(".u-over").wait_for()
    strip, plot = page.locator("svg.strip").bounding_box(), page.locator(".u-over").bounding_box()
    first, last = (page.locator("svg.strip rect.active").nth(n).bounding_box() for n in (0, 2))
    assert strip["y"] > plot["y"] + plot["height"]
    assert plot["x"] - 2 <= first["x"]
    assert last["x"] + last["width"] <= plot["x"] + plot["width"] + 2
    assert first["y"] < last["y"]
    assert "3 segments in 3 partitions" in page.locator("svg.strip").get_attribute("aria-label")
    page.get_by_text("Segments: 3 segments").click()
    assert page.locator("details[open] tbody tr").count() == 3
    assert "estimated" not in page.locator("main").inner_text()
    page.get_by_label("Timeline of partition 1").click()
    page.wait_for_url("**partition=1*")
    assert "1 segment in 1 partition" in page.locator("svg.strip").get_attribute("aria-label")
    page.locator(".u-over").wait_for()
    page.keyboard.press("+")
    page.wait_for_url("**from=*")
    assert "partition=1" in page.url
    page.get_by_role("link", name="all partitions").click()
    assert "3 partitions, one row each" in page.locator(".legend").inner_text()


def records_said(page):
    return int(re.match(r"([\d,]+) records", page.locator("#timeline + .note").inner_text())[1].replace(",", ""))


def test_a_moment_is_filtered_and_a_key_followed_through_time(console, page):
    page.goto(console.address + PAGES["moment"])
    page.get_by_label("Where").fill("value.state = 'paid'")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**where=*")
    shown = page.locator("tr[data-row] td:nth-child(5)").all_inner_texts()
    assert shown
    assert all('"paid"' in one for one in shown)
    page.locator("tr[data-row] td:nth-child(4) a").first.click()
    page.wait_for_url("**key=*")
    keys = set(page.locator("tr[data-row] td:nth-child(4)").all_inner_texts())
    assert len(keys) == 1
    with page.expect_download() as loading:
        page.get_by_role("link", name="JSON lines").click()
    lines = loading.value.path().read_text("utf-8").splitlines()
    assert {json.loads(line)["key"] for line in lines} == keys
    assert page.locator("#command").inner_text().startswith("horolog consume orders")


@pytest.mark.parametrize("size", [(390, 844), (820, 1180), (1440, 900)], ids=["phone", "tablet", "desktop"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("fragment", ["", "#moment"], ids=["typed", "linked"])
def test_the_moment_is_in_view_when_its_page_opens(console, chromium, size, scripts, fragment):
    """With records before and after it, whichever way somebody came."""
    context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, java_script_enabled=scripts)
    page = context.new_page()
    page.goto(f"{console.address}/moment?topic=orders&at=20h&within=9h{fragment}")
    moment = page.get_by_role("rowheader", name="the moment")
    expect(moment).to_be_in_viewport(ratio=1)
    expect(page.locator("#before tr").last).to_be_in_viewport()
    expect(page.locator("#after tr").first).to_be_in_viewport()
    context.close()


@pytest.mark.parametrize("path", ["/moment?topic=hostile&at=1h", "/moment?topic=orders&at=20h&within=2h"])
def test_values_are_read_on_a_phone(console, page, path):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(console.address + path)
    contents = page.locator("td.content")
    assert contents.count()
    for number in range(min(contents.count(), 5)):
        box = contents.nth(number).bounding_box()
        assert box["x"] >= 0
        assert box["width"] >= 300
        assert box["x"] + box["width"] <= 390


def test_a_value_is_folded_open(console, page):
    page.goto(console.address + PAGES["moment"])
    row = page.locator("tr[data-row]").first
    assert not row.locator(".tree").is_visible()
    assert row.bounding_box()["height"] < 40
    row.locator("summary").first.click()
    assert row.locator(".tree .field").all_inner_texts() == ["id", "state"]
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(row.locator(".tree")).to_be_hidden()
    page.keyboard.press("o")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    for name, begins in (("Copy value", '{"id"'), ("Copy key", "c-"), ("Copy command", "horolog consume orders")):
        row.get_by_role("button", name=name).click()
        assert page.evaluate("window.copied").startswith(begins)
    row.get_by_role("link", name="Link").click()
    page.wait_for_url("**#r*")
    expect(page.locator("tr:target")).to_be_in_viewport()


def test_a_range_is_dragged_on_the_timeline_of_a_moment(console, page):
    page.goto(console.address + PAGES["moment"])
    drag(page, 0.4, 0.6)
    page.wait_for_url("**until=*")
    assert page.get_by_label("Until").input_value().endswith("Z")
    assert 0 < page.locator("tr[data-row]").count() < 40
    page.keyboard.press("0")
    page.wait_for_url("**span=all*")


def test_a_typo_is_corrected_in_its_field(console, page):
    page.goto(console.address + PAGES["moment"])
    page.get_by_label("Time").fill("20 ours")
    page.get_by_label("Where").fill("value.state = 'paid'")
    page.get_by_role("button", name="Show").click()
    wrong = page.get_by_role("alert")
    assert wrong.inner_text().startswith("'20 ours'")
    assert page.get_by_label("Where").input_value() == "value.state = 'paid'"
    time = page.get_by_label("Time")
    assert time.evaluate("(box) => box.getAttribute('aria-describedby')") == wrong.get_attribute("id")
    time.fill("20h")
    page.keyboard.press("Enter")
    page.wait_for_url("**at=20h**")
    expect(page.get_by_role("rowheader", name="the moment")).to_be_in_viewport()


def test_a_search_goes_on_both_ways_until_it_is_stopped_or_done(console, page, filled):
    at = filled[1] - 2 * HOUR + HOUR // 2
    page.goto(f"{console.address}/moment?topic=many&at={at}&within=1h&where={quote('value.rare = true')}")
    said = page.locator("#progress")
    page.get_by_role("button", name="Stop").click()
    expect(said).to_contain_text("stopped")
    stopped = said.inner_text()
    page.get_by_role("button", name="Continue").click()
    expect(said).to_contain_text("there are no more records in the time range", timeout=60_000)
    assert said.inner_text() != stopped
    assert re.search(rf"among {MANY // 1000},00\d records", said.inner_text()), (
        "each once, but for those of the time where the page ended"
    )
    assert page.locator("#before tr").count() == page.locator("#after tr").count() == 2
    expect(page.get_by_role("button", name="Continue")).to_be_hidden()
    times = page.locator("tr[data-row] time").all_inner_texts()
    assert times == sorted(times)
    assert page.locator(".alert").count() == 0


def test_a_search_ends_with_its_page(console, page, filled):
    at = filled[1] - 2 * HOUR + HOUR // 2
    for _ in range(6):  # more than there may be at once
        page.goto(f"{console.address}/moment?topic=many&at={at}&within=1h&where={quote('value.id < 0')}")
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        page.goto(console.address + "/groups")


def test_records_appear_as_they_are_written_and_pausing_ends_the_fetches(console, page, filled):
    page.goto(console.address + "/follow?topic=late&where=" + quote("value ~ 'new'"))
    page.get_by_text("following", exact=True).wait_for()

    async def write(*values):
        async with Producer(filled[0].address) as producer:
            for value in values:
                await producer.send_and_wait("late", value)

    in_a_thread(write(b"an old one", HOSTILE.encode() + b" new"))
    row = page.locator("#follow tbody tr")
    row.wait_for()
    assert HOSTILE in row.inner_text()
    assert page.title() != "broken"
    page.get_by_role("button", name="Pause").click()
    in_a_thread(write(b"new while nobody looks"))
    page.wait_for_timeout(1500)
    assert row.count() == 1
    page.get_by_role("button", name="Clear").click()
    assert row.count() == 0


def test_a_group_is_reset_by_a_click_on_the_timeline_once_that_is_confirmed(console, page):
    page.goto(console.address + "/group?name=billing")
    page.get_by_role("link", name="Reset orders").click()
    drag(page, 0.5, 0.25)
    page.wait_for_url("**to=*")
    assert "nothing was changed" in page.locator("main").inner_text()
    page.get_by_label("Type the name").fill("billing")
    page.get_by_role("button", name="Reset the group").click()
    page.wait_for_url("**/group?name=billing")


def test_a_setting_is_changed_once_the_name_of_its_topic_is_typed(console, page):
    page.goto(console.address + "/topic?name=payments")
    page.locator("summary", has_text="defaults").click()
    page.get_by_role("link", name="retention.ms", exact=True).click()
    page.get_by_label("Value").fill("1d")
    page.get_by_role("button", name="Show what this does").click()
    expect(page.locator(".does .warn")).to_contain_text("retention deletes up to")
    assert faults_in(page) == []
    page.get_by_label("Type payments").fill("payment")
    page.get_by_role("button", name="Change the setting").click()
    expect(page.get_by_role("alert")).to_contain_text("type payments")
    expect(page.locator("#command")).to_contain_text("horolog configs set topic payments retention.ms=86400000")


def test_two_topics_are_compared(console, page):
    page.goto(console.address + "/compare")
    page.get_by_label("Topic", exact=True).fill("orders")
    page.get_by_label("with topic").fill("payments")
    page.get_by_role("button", name="Compare").click()
    assert "-60" in page.locator(".figures").inner_text()
    page.locator(".u-over").wait_for()


def test_who_is_at_a_row_stays_there_when_the_table_comes_anew(console, page):
    page.goto(console.address)
    page.keyboard.press("j")
    page.keyboard.press("j")
    there = page.evaluate("document.activeElement.getAttribute('href')")
    assert there.startswith("/topic?")
    page.evaluate("document.querySelector('tr.here').dataset.old = 'yes'")
    page.locator("tr.here:not([data-old])").wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.getAttribute('href')") == there
    assert page.locator("tr.here").count() == 1


def test_everything_is_reached_by_keys(console, page):
    page.goto(console.address)
    for keys, path in (
        ("gg", "/groups"),
        ("gm", "/moment"),
        ("gf", "/follow"),
        ("gc", "/compare"),
        ("ga", "/access"),
        ("gt", "/transactions"),
        ("gn", "/"),
    ):
        page.keyboard.press(keys[0])
        page.keyboard.press(keys[1])
        page.wait_for_url(console.address + path)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topic?**")
    page.keyboard.press("?")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_a_moment_of_a_range_is_typed_as_on_the_command_line(console, page, filled):
    page.goto(console.address + "/moment?topic=orders")
    since = datetime.fromtimestamp((filled[1] - 30 * HOUR) / 1000, UTC)
    page.get_by_label("Time").fill(f"{since:%Y-%m-%d %H:%M}..+1h")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**at=2**")
    assert page.locator("tr[data-row]").count() == 10
    assert " to " in page.locator("h1").inner_text()
    page.get_by_role("link", name="Later").click()
    page.wait_for_url("**at=%40**")
    assert page.locator("tr[data-row]").count() == 10


def test_pages_say_what_they_say_without_scripts(console, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(console.address + PAGES["topic"])
    page.get_by_text("Numbers").click()
    assert page.locator("details[open] tbody tr").count() > 10
    page.goto(console.address + "/?filter=pay")
    assert page.locator("tr[data-row]").count() == 1
    context.close()


def test_a_link_carries_its_time_and_filters(console, page):
    page.goto(
        console.address + "/moment?topic=orders&at=2020-01-01T00:00:00Z&within=1h&where=offset+%3E+3&tz=Asia/Tokyo"
    )
    assert page.get_by_label("Where").input_value() == "offset > 3"
    assert "2020-01-01 09:00:00" in page.locator("h1").inner_text()
    assert "tz=Asia" in page.get_by_role("link", name="Groups").get_attribute("href")
    assert HOUR
