"""R: retention by message time and size. Needs a target that checks retention every second or so
(log.retention.check.interval.ms=1000); with the usual five minutes everything reads as 'kept'.
"""

import time

from tests.vendor.wire_prober.cases_d import add
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire_records import batch, msg

H = 3_600_000


def settle(c, t, limit=9.0):
    """Earliest offset once it has moved and stayed for three checks of retention, or after the limit"""
    end, last, since = time.time() + limit, 0, None
    while time.time() < end:
        e = c.list_offsets(1, t, -2)["offset"]
        if e != last:
            last, since = e, time.time()
        if since and time.time() - since > 3:
            break
        time.sleep(0.2)
    return last


def report(c, t):
    e = settle(c, t)
    c.rec("earliest", e)
    c.rec("latest", c.leo(t))
    fv = c.t.best("Fetch", 4)
    c.rec("fetch_0", c.fetch(fv, t, 0)["error_code"])
    c.rec("by_time_long_ago", c.list_offsets(1, t, c.B(-100 * H)))


@case(
    "r.time.all_old",
    "every message is too old, also in the active segment: all goes, offsets continue",
    slow=True,
    ts=(-9 * H, -9 * H + 1000, -8 * H),
)
@case(
    "r.time.young_first_blocks",
    "a young first segment shields older ones behind it",
    slow=True,
    ts=(0, 1000, -9 * H, -9 * H + 1000, 70_000),
)
@case(
    "r.time.disordered_segments",
    "old, young, old segments: only the leading old one goes",
    slow=True,
    ts=(-9 * H, -9 * H + 1000, 0, 1000, 62_000),
)
def _(c, ts):
    t = c.topic(retention__ms=90 * 60_000, segment__ms=60_000)
    for x in ts:
        add(c, t, c.B(x))
    report(c, t)
    add(c, t, c.B(100_000))
    c.rec("next_offset", c.leo(t))


@case("r.time.segment_maximum", "one young message in an old segment keeps the whole segment", slow=True)
def _(c):
    """In one request: between two, retention may find old messages alone, and rightly delete them"""
    t = c.topic(retention__ms=90 * 60_000, segment__ms=7 * 24 * H)
    times = [c.B(x) for x in (-9 * H, -8 * H, 0)]
    if c.t.has("Produce", 3):
        answer = c.produce(3, t, batch([{"value": b"d", "ts": x} for x in times], ts=times[0]))
    else:
        answer = c.produce(2, t, b"".join(msg(b"d", ts=x) for x in times))
    assert answer["error_code"] == 0, answer
    report(c, t)
    add(c, t, c.B(100_000))
    c.rec("next_offset", c.leo(t))


@case(
    "r.time.lat_old_create",
    "LogAppendTime topic: old producer timestamps do not matter",
    slow=True,
    needs="ListOffsets:1",
)
def _(c):
    t = c.topic(retention__ms=90 * 60_000, segment__ms=60_000, message__timestamp__type="LogAppendTime")
    for x in (-9 * H, -8 * H):
        add(c, t, c.B(x))
    report(c, t)


@case(
    "r.time.none_short",
    "messages without timestamps, retention 2 s: file time counts",
    slow=True,
    needs="ListOffsets:1",
    ms=2000,
)
@case(
    "r.time.none_long",
    "messages without timestamps, retention 90 min: kept",
    slow=True,
    needs="ListOffsets:1",
    ms=90 * 60_000,
)
def _(c, ms):
    t = c.topic(retention__ms=ms)
    for i in range(2):
        add(c, t, -1)
    report(c, t)


@case("r.time.short_now", "retention 2 s with fresh timestamps: gone a little later", slow=True)
def _(c):
    t = c.topic(retention__ms=2000)
    for i in range(2):
        add(c, t, c.now())
    report(c, t)


@case("r.time.unlimited", "retention -1 keeps 1970", slow=True)
def _(c):
    t = c.topic(retention__ms=-1, segment__ms=60_000)
    for x in (1, 100_000, 200_000):
        add(c, t, x)
    report(c, t)


@case("r.time.compact_only", "cleanup.policy=compact: time retention does not apply", slow=True)
def _(c):
    t = c.topic(retention__ms=1000, segment__ms=60_000, cleanup__policy="compact")
    for i, x in enumerate((-9 * H, -8 * H, 0)):
        add(c, t, c.B(x), key=b"k%d" % i)
    report(c, t)


@case("r.size.under_limit", "retention.bytes larger than the log: kept", slow=True)
def _(c):
    t = c.topic(retention__bytes=10_000_000, segment__bytes=1048576)
    for i in range(5):
        add(c, t, c.B(i), 400_000)
    report(c, t)
