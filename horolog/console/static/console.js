/* What pages do beyond links and forms: pictures, keys, live rows. Everything it shows of a broker is text, never markup. */
"use strict";
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const pad = (number, digits = 2) => String(number).padStart(digits, "0");

  // -- times: as the page's zone has them, for the server sends how far it is from UTC in the times it shows

  const offsetOfPage = () => {
    const shown = document.querySelector("time[datetime]");
    const found = shown && /([+-])(\d\d):(\d\d)$/.exec(shown.getAttribute("datetime"));
    return found ? (found[1] === "-" ? -1 : 1) * (60 * found[2] + +found[3]) * 60000 : 0;
  };
  const spoken = (ms, step) => {
    const at = new Date(ms + offsetOfPage());
    const day = `${at.getUTCFullYear()}-${pad(at.getUTCMonth() + 1)}-${pad(at.getUTCDate())}`;
    if (step >= 86400000) return day;
    const clock = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}`;
    if (step >= 60000) return `${day} ${clock}`;
    const seconds = `${day} ${clock}:${pad(at.getUTCSeconds())}`;
    return step >= 1000 ? seconds : `${seconds}.${pad(at.getUTCMilliseconds(), 3)}`;
  };
  // A time with its zone, as the command line and every field read it; beyond the calendar a number.
  const exact = (ms) => {
    ms = Math.round(ms);
    if (Math.abs(ms) > 253402300799999 || ms < -62135596800000) return `@${ms}ms`;
    const shift = offsetOfPage() / 60000;
    const zone = shift ? `${shift < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(shift) / 60))}:${pad(Math.abs(shift) % 60)}` : "Z";
    return spoken(ms, ms % 1000 ? 1 : 1000).replace(" ", "T") + zone;
  };
  const selected = (plot) => [plot.select.left, plot.select.left + plot.select.width].map((at) => exact(plot.posToVal(at, "x")));
  const shortTick = (ms, step, previous) => {
    const whole = spoken(ms, step);
    return previous && whole.slice(0, 10) === previous.slice(0, 10) && step < 86400000 ? whole.slice(11) : whole;
  };
  const bytesSpoken = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
    return `${value.toFixed(unit && value < 100 ? 1 : 0)} ${units[unit]}`;
  };
  const spanSpoken = (seconds) => (seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : seconds < 172800 ? `${Math.round(seconds / 360) / 10} h` : `${Math.round(seconds / 8640) / 10} d`);
  const address = (base, values) => {
    const url = new URL(base, location.href);
    for (const [key, value] of Object.entries(values)) url.searchParams.set(key, value);
    return url.pathname + url.search + url.hash;
  };

  // -- pictures

  const SECOND = 1000, MINUTE = 60000, HOUR = 3600000, DAY = 86400000;
  const ROUND = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 30].flatMap((n) => [n * SECOND]),
    ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
    ...[1, 2, 7, 14, 28, 91, 182, 365, 730, 3650].map((n) => n * DAY)];
  const roundTimes = (plot, _, low, high) => {
    const wanted = Math.max(1, Math.floor((plot.bbox.width / devicePixelRatio) / 120));
    const step = ROUND.find((one) => (high - low) / one <= wanted) || ROUND[ROUND.length - 1];
    const shift = offsetOfPage();
    const found = [];
    for (let at = Math.ceil((low + shift) / step) * step - shift; at <= high; at += step) found.push(at);
    return found;
  };

  const fits = (plot, at, label) => plot.bbox.left / devicePixelRatio + plot.valToPos(at, "x") + (label.length * LETTER) / 2 <= plot.width;
  const axes = (step) => [
    { stroke: colour("--quiet"), grid: { show: false }, ticks: { stroke: colour("--line"), size: 4 }, size: 32, splits: roundTimes,
      values: (plot, ticks) => ticks.map((at, n) => {
        const label = shortTick(at, ticks.length > 1 ? ticks[1] - ticks[0] : step, n ? spoken(ticks[n - 1], 1) : "");
        return fits(plot, at, label) ? label : "";
      }) },
    { stroke: colour("--quiet"), grid: { stroke: colour("--soft"), width: 1 }, ticks: { show: false }, size: 62,
      values: (_, ticks) => ticks.map((one) => (Number.isInteger(one) ? one.toLocaleString("en") : "")) },
  ];

  const lines = (marks) => (plot) => {
    const { ctx, bbox } = plot;
    for (const [at, name] of marks) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.save();
      ctx.strokeStyle = colour(name);
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
    }
  };

  const shade = (times) => (plot) => {
    if (!times) return;
    const { ctx, bbox } = plot;
    const [from, until] = times.map((at) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(at, "x", true))));
    ctx.save();
    ctx.fillStyle = colour("--accent-soft");
    ctx.fillRect(from, bbox.top, Math.max(until - from, devicePixelRatio), bbox.height);
    ctx.restore();
  };

  const drawTimeline = (box) => {
    const data = JSON.parse(box.dataset.chart);
    const starts = data.counts.map((_, n) => data.start + n * data.bucket);
    const middles = starts.map((at) => at + data.bucket / 2);
    const end = data.start + data.counts.length * data.bucket;
    const come = data.counts.map((count, n) => (starts[n] <= data.now && count ? count : null));
    const ahead = data.counts.map((count, n) => (starts[n] > data.now && count ? count : null));
    const bars = uPlot.paths.bars({ size: [0.86, 60], gap: 0 });
    const series = (label, name) => ({ label, stroke: colour(name), fill: colour(name), width: 0, paths: bars, points: { show: false },
      value: (_, value) => (value == null ? "0" : value.toLocaleString("en")) });
    const marks = [[data.now, "--good"]];
    const colours = { retention: "--bad", target: "--bad", position: "--accent", moment: "--accent" };
    for (const [name, at] of Object.entries(data.marks)) marks.push([at, colours[name] || "--quiet"]);
    let picked = -1;
    let dragged = false;
    const plot = new uPlot({
      width: box.clientWidth, height: box.clientHeight - LEGEND,
      ms: 1, padding: [8, 8, 0, 0],
      scales: { x: { time: false, range: () => [data.start, end] }, y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: axes(data.bucket),
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      series: [
        { label: "From", value: (_, value) => (value == null ? "–" : spoken(value - data.bucket / 2, data.bucket)) },
        series("Records", "--bar"), series("Ahead of now", "--bar-late"),
        ...(data.bytes ? [{ label: data.exact ? "Bytes" : "Bytes, estimated", show: true, stroke: "transparent", scale: "bytes", points: { show: false }, value: (_, value) => (value == null ? "–" : bytesSpoken(value)) }] : []),
      ],
      hooks: {
        drawClear: [shade(data.shown)],
        draw: [lines(marks)],
        setSelect: [(it) => {
          if (it.select.width < 4) return;
          dragged = true;
          const [from, until] = selected(it);
          if (box.closest("#pick")) return open(plot.posToVal(plot.cursor.left, "x"));
          const [first, second] = (box.dataset.names || "from until").split(" ");
          if (box.dataset.range) location.assign(address(box.dataset.range, { [first]: from, [second]: until }));
        }],
      },
    }, [middles, come, ahead, ...(data.bytes ? [data.bytes] : [])], box);
    const open = (at) => {
      const name = box.closest("#pick") ? "to" : "at";
      if (box.dataset.moment) location.assign(address(box.dataset.moment, { [name]: exact(at) }));
    };
    plot.over.addEventListener("mousedown", () => { dragged = false; });
    plot.over.addEventListener("click", () => {
      const at = plot.posToVal(plot.cursor.left, "x");
      if (!dragged) open(Math.round(data.bucket > 1 ? Math.floor((at - data.start) / data.bucket) * data.bucket + data.start : at));
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
        const step = event.key === "ArrowRight" ? 1 : -1;
        picked = Math.max(0, Math.min(data.counts.length - 1, picked < 0 ? (step > 0 ? 0 : data.counts.length - 1) : picked + step));
        plot.setCursor({ left: plot.valToPos(middles[picked], "x"), top: 10 });
        event.preventDefault();
      } else if (event.key === "Enter" && picked >= 0) open(starts[picked]);
    });
    return plot;
  };

  const drawLag = (box) => {
    const data = JSON.parse(box.dataset.lag);
    const line = (label, scale, name) => ({ label, scale, stroke: colour(name), width: 2, value: (_, value) => (value == null ? "–" : value.toLocaleString("en")), points: { show: data.times.length < 3 } });
    const [times, records] = axes(1000);
    return new uPlot({
      width: box.clientWidth, height: box.clientHeight - LEGEND, ms: 1, padding: [8, 8, 0, 0],
      scales: { x: { time: false, range: () => [Math.min(data.times[0] ?? 0, (data.times.at(-1) ?? 0) - 60000), data.times.at(-1) ?? 60000] }, records: { range: (_, low, high) => [0, Math.max(1, high)] }, seconds: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: [times, { ...records, scale: "records" }, { ...records, scale: "seconds", side: 1, grid: { show: false }, values: (_, ticks) => ticks.map(spanSpoken) }],
      series: [{ label: "At", value: (_, value) => (value == null ? "–" : spoken(value, 1000)) }, line("Records behind", "records", "--bar"), { ...line("Time behind", "seconds", "--bar-late"), value: (_, value) => (value == null ? "–" : spanSpoken(value)) }],
    }, [data.times, data.records, data.seconds], box);
  };

  const drawCompare = (box) => {
    const data = JSON.parse(box.dataset.compare);
    const starts = data.one.map((_, n) => data.start + n * data.bucket);
    const middles = starts.map((at) => at + data.bucket / 2);
    const end = data.start + data.one.length * data.bucket;
    const line = (label, name, dash) => ({ label, stroke: colour(name), width: 2, dash, paths: uPlot.paths.stepped({ align: 0 }), points: { show: false }, value: (_, value) => (value == null ? "–" : value.toLocaleString("en")) });
    return new uPlot({
      width: box.clientWidth, height: box.clientHeight - LEGEND, ms: 1, padding: [8, 8, 0, 0],
      scales: { x: { time: false, range: () => [data.start, end] }, y: { range: (_, low, high) => [0, Math.max(1, high)] } },
      axes: axes(data.bucket),
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      series: [{ label: "From", value: (_, value) => (value == null ? "–" : spoken(value - data.bucket / 2, data.bucket)) }, line(box.dataset.one, "--bar"), line(box.dataset.other, "--bar-late", [6, 4])],
      hooks: { setSelect: [(it) => {
        if (it.select.width < 4) return;
        const [from, until] = selected(it);
        location.assign(address(box.dataset.range, { from, until }));
      }] },
    }, [middles, data.one, data.other], box);
  };

  // -- the moment: in view when its page is opened, wherever the address came from; who comes back is where they were

  const goToMoment = () => {
    const way = performance.getEntriesByType("navigation")[0];
    const there = document.getElementById("moment");
    if (there && !location.hash && way && way.type === "navigate") there.scrollIntoView({ block: "start" });
  };

  const drawn = new Map();
  // Regions have names of their own: the heading above, and a number from the second table of a card on.
  const named = (box) => {
    const card = box.closest("section"), heading = card && card.querySelector("h2");
    const number = card ? [...card.querySelectorAll(".scroll")].indexOf(box) : 0;
    return `Table: ${heading ? heading.textContent.trim() : document.title}${number ? ` ${number + 1}` : ""}`;
  };
  // Without a mouse, you scroll a table that does not fit by keys.
  const scrolled = (box) => {
    if (box.scrollWidth > box.clientWidth) { box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", named(box)); }
    else { box.removeAttribute("tabindex"); box.removeAttribute("role"); box.removeAttribute("aria-label"); }
  };
  const LEGEND = 26;
  const LETTER = 6.5; // the mean width of a letter on an axis
  // In the frame of the new size: a page is never wider than its window, not even for a moment.
  const sizes = new ResizeObserver((changes) => {
    for (const { target: box } of changes) {
      const plot = drawn.get(box);
      if (!plot) scrolled(box);
      else if (box.clientWidth && box.clientWidth !== plot.width) plot.setSize({ width: box.clientWidth, height: box.clientHeight - LEGEND });
    }
  });
  const draw = () => {
    for (const box of document.querySelectorAll(".scroll")) { scrolled(box); sizes.observe(box); }
    for (const [box, plot] of drawn) if (!box.isConnected) { plot.destroy(); drawn.delete(box); sizes.unobserve(box); }
    for (const box of document.querySelectorAll("[data-chart], [data-lag], [data-compare]")) {
      if (drawn.has(box)) continue;
      drawn.set(box, box.dataset.chart ? drawTimeline(box) : box.dataset.lag ? drawLag(box) : drawCompare(box));
      sizes.observe(box);
    }
  };
  const redraw = () => {
    for (const [box, plot] of drawn) { plot.destroy(); box.replaceChildren(); drawn.delete(box); }
    draw();
  };

  // -- keys

  const PAGES = { n: "/", m: "/moment", f: "/follow", g: "/groups", c: "/compare", b: "/cluster", a: "/access", t: "/transactions", s: "/schemas" };
  let prefix = 0;
  const rows = () => [...document.querySelectorAll("tr[data-row]")];
  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const next = all[Math.max(0, Math.min(all.length - 1, all.findIndex((row) => row.classList.contains("here")) + step))];
    for (const row of all) row.classList.toggle("here", row === next);
    (next.querySelector("a") || next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  // Whoever is at a row stays there when the table comes anew.
  const staying = (swap) => {
    const link = document.querySelector("tr.here a");
    const address = link && link.getAttribute("href"), focused = link && document.activeElement === link;
    swap();
    for (const row of address ? rows() : []) {
      const again = row.querySelector("a");
      if (!again || again.getAttribute("href") !== address) continue;
      row.classList.add("here");
      if (focused) again.focus({ preventScroll: true });
    }
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, select, textarea, dialog");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const key = event.key;
    if (prefix && Date.now() - prefix < 1500 && PAGES[key]) {
      prefix = 0;
      const there = [...document.querySelectorAll("nav a")].find((one) => new URL(one.href).pathname === PAGES[key]);
      if (there) there.click();
      return;
    }
    prefix = key === "g" ? Date.now() : 0;
    const button = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (button) button.click();
    else if (key === "/") { const box = document.querySelector("[data-filter]"); if (box) { box.focus(); box.select(); event.preventDefault(); } }
    else if (key === "o") { const there = document.querySelector("tr.here details"); if (there) there.open = !there.open; }
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "?") document.getElementById("keys").showModal();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-help]")) document.getElementById("keys").showModal();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });

  // -- parts that the server sends anew: not while nobody sees them, and what is wrong is said above them

  const SILENT = "The console does not respond; this page may be out of date.";
  // What is shown is old while something bad is said: what held then is not said to hold now.
  const notice = (text, kind) => {
    let said = document.getElementById("gone");
    document.getElementById("content").classList.toggle("old", Boolean(text) && kind !== "good");
    if (!text) { if (said) said.remove(); return; }
    if (!said) {
      said = document.createElement("p");
      said.id = "gone";
      said.setAttribute("role", "alert");
      document.getElementById("content").prepend(said);
    }
    said.className = `alert ${kind || ""}`;
    said.textContent = text;
  };
  let stream = null, streamed = "", away = "";
  const closeStream = () => { if (stream) stream.close(); stream = null; streamed = ""; };
  const live = () => {
    const part = document.querySelector("[data-live]");
    const from = part && !document.hidden ? part.dataset.live : "";
    if (from === streamed) return;
    closeStream();
    if (!from) return;
    streamed = from;
    const mine = stream = new EventSource(from);
    const on = (name, act) => mine.addEventListener(name, (event) => { if (mine === stream) act(event.data && JSON.parse(event.data)); });
    on("part", (data) => {
      const back = away;
      away = "";
      notice(back && back !== SILENT ? "The broker answers again." : "", "good");
      staying(() => htmx.swap(part.dataset.into, data.html, { swapStyle: "innerHTML" }));
    });
    on("away", (data) => { away = data.why; notice(`${away}. What is shown is old.`); });
    on("again", () => { closeStream(); live(); });
    // The address stays noted: this page is not live any more.
    on("ended", (data) => { mine.close(); notice(`Not live: ${data.why}.`, "warn"); });
    on("error", () => {
      away = away || SILENT;
      notice(mine.readyState === EventSource.CLOSED ? "This page is no longer live; reload it." : SILENT);
    });
  };
  document.addEventListener("visibilitychange", live);
  addEventListener("pagehide", closeStream);
  addEventListener("pageshow", (event) => { if (event.persisted) live(); });
  document.addEventListener("htmx:afterSettle", () => { draw(); live(); });
  document.addEventListener("htmx:sendError", () => notice(SILENT));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful && !away) notice(""); });

  // -- a search that goes on while its page is open: rows come as the server has made them

  const search = (box) => {
    const at = box.dataset, button = box.querySelector("button");
    const [before, after] = ["before", "after"].map((id) => document.getElementById(id));
    const count = (number) => Number(number).toLocaleString("en");
    let source = null;
    const say = (text, on) => {
      document.getElementById("progress").textContent = text;
      box.querySelector(".live").classList.toggle("off", !on);
      button.textContent = on ? "Stop" : "Continue";
      button.hidden = false;
    };
    const sums = () => `${count(+at.earlier + +at.later)} found among ${count(at.looked)} records`;
    const stop = (why) => { if (source) source.close(); source = null; say(`${sums()}: ${why}`, false); };
    const found = (data) => {
      before.insertAdjacentHTML("afterbegin", data.before);
      const rest = after.querySelector(".none");
      after.insertAdjacentHTML("beforeend", data.after);
      if (rest && (data.before || data.after)) rest.remove();
      at.low = data.low; at.high = data.high; at.looked = data.looked_at;
      at.earlier = +at.earlier + data.earlier; at.later = +at.later + data.later;
      const all = [...before.rows, ...after.rows].filter((row) => "row" in row.dataset);
      for (const [key, row] of [["[", all[0]], ["]", all.at(-1)]]) {
        const link = document.querySelector(`[data-key="${key}"]`);
        if (row && link) link.href = row.querySelector("a").href;
      }
      document.getElementById("sums").textContent = `${sums()}, ${data.from} to ${data.until}`;
      say(`Searching: ${sums()}, ${data.from} to ${data.until}`, true);
    };
    const start = () => {
      const { low, high, earlier, later, looked } = at;
      const mine = source = new EventSource(address(at.search, { low, high, earlier, later, looked_at: looked }));
      say(`Searching: ${sums()}`, true);
      mine.addEventListener("found", (event) => found(JSON.parse(event.data)));
      mine.addEventListener("paused", (event) => stop(JSON.parse(event.data).why));
      mine.addEventListener("done", (event) => {
        stop(JSON.parse(event.data).why);
        button.hidden = true;
        const none = after.querySelector(".none td");
        if (none) none.textContent = "No matching record lies there.";
      });
      mine.onerror = () => stop(mine.readyState === EventSource.CLOSED ? "other searches are under way" : "the console does not respond");
    };
    button.addEventListener("click", () => { if (source) stop("stopped"); else start(); });
    addEventListener("pagehide", () => { if (source) source.close(); });
    addEventListener("pageshow", (event) => { if (event.persisted && source) start(); });
    start();
  };

  // -- following: the server sends text, rows are made of it here

  const ROWS_KEPT = 500;
  const follow = (table) => {
    const by = (id) => document.getElementById(id);
    const body = table.tBodies[0];
    let source = null, looked = 0, wanted = 0, shown = 0;
    const say = (text, on) => { by("state").textContent = text; by("light").classList.toggle("off", !on); };
    const cell = (row, text, name) => { const made = row.insertCell(); made.className = name || ""; made.textContent = text; return made; };
    const add = (record) => {
      const row = body.insertRow(0);
      row.dataset.row = "";
      const link = document.createElement("a");
      link.href = address(table.dataset.moment, record.at >= 0 ? { at: exact(record.at) } : {});
      link.textContent = record.time;
      cell(row, "", "at").append(link);
      cell(row, record.partition, "num").dataset.name = "partition";
      cell(row, record.offset, "num").dataset.name = "offset";
      cell(row, record.key === null ? "none" : record.key, "mono key").dataset.name = "key";
      cell(row, record.value === null ? "none (deleted)" : record.value, "mono content");
      while (body.rows.length > ROWS_KEPT) body.deleteRow(-1);
    };
    const start = () => {
      source = new EventSource(table.dataset.events);
      source.addEventListener("ready", () => say("following", true));
      source.addEventListener("records", (event) => {
        const data = JSON.parse(event.data);
        looked += data.looked_at; wanted += data.wanted; shown += data.rows.length;
        data.rows.forEach(add);
        const passed = wanted > shown ? `, ${(wanted - shown).toLocaleString("en")} passed over` : "";
        by("sums").textContent = `${wanted.toLocaleString("en")} of ${looked.toLocaleString("en")} wanted${passed}`;
      });
      for (const name of ["failed", "ended"]) source.addEventListener(name, (event) => { stop(); say(JSON.parse(event.data).why, false); });
      source.onerror = () => say("no answer; trying again", false);
    };
    const stop = () => { if (source) source.close(); source = null; };
    by("pause").addEventListener("click", () => {
      if (source) { stop(); say("paused: nothing is fetched", false); by("pause").textContent = "Resume"; }
      else { say("connecting", false); by("pause").textContent = "Pause"; start(); }
    });
    by("clear").addEventListener("click", () => body.replaceChildren());
    addEventListener("pagehide", stop);
    start();
  };
  document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy], [data-copy-text], [data-copy-raw]");
    if (!copy) return;
    const from = copy.dataset.copy ? document.getElementById(copy.dataset.copy) : copy.closest(".record") && (copy.closest(".record").querySelector(".raw") || copy.closest(".record").querySelector(".line"));
    const text = "copyText" in copy.dataset ? copy.dataset.copyText : from.textContent;
    navigator.clipboard.writeText(text).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Cannot copy here"; });
  });

  document.addEventListener("DOMContentLoaded", () => {
    draw();
    goToMoment();
    live();
    const table = document.getElementById("follow");
    if (table) follow(table);
    const searched = document.getElementById("search");
    if (searched) search(searched);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  });
})();
