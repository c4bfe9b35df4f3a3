"""Every step that the model can take from a state: what brokers do, and what arrives in the store.

`bug` names the planted bug, one of `exploring.BUGS`, that a broker acts by; empty for the protocol as it is designed.
"""

from typing import NamedTuple

from tests.model.state import (
    FENCE,
    NO_MANIFEST,
    Append,
    Bounds,
    Broker,
    Entry,
    Manifest,
    Put,
    State,
    counts,
    lineage,
    records_of,
)

UNSAFE_PUTS = 2
"""So many WAL objects of a broker are under way at a time."""


class Turn(NamedTuple):
    """A broker that may act, and what it knows."""

    state: State
    me: int
    broker: Broker
    bounds: Bounds
    bug: str
    line: list
    fenced: dict

    def copy(self):
        state = self.state.copy()
        return state, state.own(self.me)

    @property
    def may_append(self):
        """An entry is based on all entries before it, and one at a time is under way."""
        broker, journal = self.broker, self.state.journal
        is_current = broker.applied == len(journal) or self.bug == "entries_taken_blindly"
        return len(journal) < self.bounds.entries and broker.pending is None and is_current

    def appended(self, entry, label):
        state, broker = self.copy()
        broker.pending = entry
        state.wire |= {Append(broker.applied, entry)}
        return f"{self.me} {label} {tuple(entry)}", state


def steps(state, bounds, bug=""):
    """Every (label, next state)."""
    for index, broker in enumerate(state.brokers):
        if broker.alive:
            line, fenced = lineage(state.journal[: broker.applied], bug)
            turn = Turn(state, index, broker, bounds, bug, line, fenced)
            for moves in (_dying, _leading, _following, _handing_over, _fencing, _taking_over, _keeping_segments):
                yield from moves(turn)
    yield from _arriving(state, bounds, bug)


def _dying(turn):
    """The last broker stays, so that somebody leads."""
    mortal = turn.me < turn.bounds.brokers - 1
    if "crash" in turn.bounds.acts and mortal and turn.broker.role in {"leads", "gives", "reading"}:
        state, broker = turn.copy()
        broker.alive = False
        yield f"{turn.me} dies", state


# -- leading: append, ship, learn, acknowledge


def _leading(turn):
    me, broker, bounds = turn.me, turn.broker, turn.bounds
    if broker.role == "leads" and turn.state.record_count < bounds.records and len(broker.log) < bounds.records:
        state, broker = turn.copy()
        broker.log += ((me, state.record_count),)
        state.record_count += 1
        yield f"{me} appends", state
    broker = turn.broker
    if broker.role not in {"leads", "gives"}:
        return
    if broker.sent < len(broker.log) and broker.number < bounds.puts and broker.number - broker.safe < UNSAFE_PUTS:
        state, broker = turn.copy()
        content = broker.term, broker.log[broker.sent :]
        state.wire |= {Put(me, broker.number, content, bounds.repeats)}
        broker.ends += (len(broker.log),)
        broker.sent, broker.number = len(broker.log), broker.number + 1
        yield f"{me} puts {broker.number - 1}", state
    yield from _learning(turn)
    yield from _acknowledging(turn)


def _learning(turn):
    """An answer to a create, or a reading after none."""
    me, broker = turn.me, turn.broker
    for number in range(broker.safe, broker.number):
        content = turn.state.wals[me].get(number)
        if number in broker.made or content is None:
            continue
        state, changed = turn.copy()
        if content != FENCE or turn.bug == "taken_is_mine":
            changed.made |= {number}
        else:
            _acknowledge(state, changed, number - 1)  # a fencer found data under all numbers before
            changed.role = "over"  # fenced: other records are dropped, and their producers refused
        yield f"{me} learns of {number}", state
    if turn.bug == "conflict_is_taken":  # the create is not there, and is not sent again
        for put in turn.state.wire:
            if isinstance(put, Put) and put.wal == me and put.number not in broker.made and broker.safe <= put.number:
                state, changed = turn.copy()
                changed.made |= {put.number}
                state.wire -= {put}
                yield f"{me} takes a conflict on {put.number} for its own", state


def _acknowledging(turn):
    broker = turn.broker
    able = max(broker.made, default=-1) if turn.bug == "ack_out_of_order" else broker.safe
    if able in broker.made:
        state, broker = turn.copy()
        _acknowledge(state, broker, able)
        yield f"{turn.me} acknowledges {able}", state


def _acknowledge(state, broker, number):
    """All records up to those of this number are safe."""
    if number < broker.safe:
        return
    broker.safe = number + 1
    broker.high_watermark = max(broker.high_watermark, broker.ends[number] if number >= broker.since else 0)
    state.tell(broker)


# -- the journal


def _following(turn):
    """Read one entry. It also says what became of the broker's own."""
    me, before, journal = turn.me, turn.broker, turn.state.journal
    if before.applied == len(journal):
        return
    state, broker = turn.copy()
    entry = journal[before.applied]
    broker.applied += 1
    broker.pending = None
    line, fenced = lineage(journal[: broker.applied], turn.bug)
    leader = line[-1][0]
    if me in fenced and broker.role != "over":
        broker.role = "over"
    elif leader == me and before.role == "idle":
        kept = before.upload if turn.bug == "upload_outlives_term" else None
        broker.role, broker.reading, broker.term, broker.upload, broker.removing = (
            "reading",
            None,
            len(line) - 1,
            kept,
            None,
        )
    elif broker.role == "gives" and leader != me:
        broker.role = "idle"
    elif broker.role == "gives" and before.pending and entry != before.pending:
        broker.role = "leads"  # another entry was first: go on, or try again
    if broker.fencing and broker.fencing[0] in fenced:
        broker.fencing = None
    yield f"{me} reads entry {before.applied}", state


def _handing_over(turn):
    """Everything is shipped and safe; then the entry comes from the leader itself, which waits for its outcome."""
    me, broker, state = turn.me, turn.broker, turn.state
    if broker.pending and broker.role == "gives" and turn.bug == "resume_while_unknown":
        after, changed = turn.copy()
        changed.pending, changed.role = None, "leads"
        yield f"{me} gives up waiting and goes on", after
    if "hand" in turn.bounds.acts and broker.role == "leads" and turn.may_append and turn.line[-1][0] == me:
        after, changed = turn.copy()
        changed.role = "gives"
        yield f"{me} begins to hand over", after
    is_shipped = broker.high_watermark == len(broker.log) and broker.safe == broker.number
    if broker.role == "gives" and turn.may_append and (is_shipped or turn.bug == "hand_over_unshipped"):
        for heir, other in enumerate(state.brokers):
            if heir != me and other.alive and other.role == "idle":
                yield turn.appended(Entry("hand", me, broker.safe, heir), "hands over")
    leader = turn.line[-1][0]
    if turn.bug == "hand_over_by_others" and broker.role == "idle" and turn.may_append and leader != me:
        other = state.brokers[leader]  # which said "all shipped", and went on after a while
        if other.alive and other.role == "leads" and other.high_watermark == len(other.log):
            yield turn.appended(Entry("hand", leader, other.safe, me), "hands over for another")


def _fencing(turn):
    """List, create the fence, read the mark again, tell the journal."""
    me, broker, state = turn.me, turn.broker, turn.state
    if broker.role == "idle" and not broker.fencing and not broker.pending and len(state.journal) < turn.bounds.entries:
        wal = turn.line[-1][0]
        if wal != me and wal not in turn.fenced and me not in turn.fenced:
            number = state.marks[wal]
            while state.wals[wal].get(number, FENCE) != FENCE:
                number += 1
            after, changed = turn.copy()
            changed.fencing = wal, number, False
            yield f"{me} lists {wal}: {number} is free", after
    if not broker.fencing or broker.pending:
        return
    wal, number, is_made = broker.fencing
    if not is_made:
        after, changed = turn.copy()
        is_mine = (
            turn.bug == "entry_without_fence" or after.create(wal, number, FENCE) or state.wals[wal][number] == FENCE
        )
        changed.fencing = (wal, number, True) if is_mine else (wal, number + 1, False)
        yield f"{me} fences {wal} at {number}: {is_mine}", after
    elif state.marks[wal] > number and turn.bug != "no_trim_check":
        after, changed = turn.copy()
        changed.fencing = None
        yield f"{me}: number {number} was in use before", after
    elif turn.may_append and wal not in turn.fenced and turn.line[-1][0] == wal:
        label, after = turn.appended(Entry(FENCE, wal, number, me), "wants")
        after.brokers[me].fencing = None
        yield label, after


# -- taking over: the newest manifest, then the WALs of the lineage behind its position


def _taking_over(turn):
    broker, state = turn.broker, turn.state
    if broker.role != "reading":
        return
    after, changed = turn.copy()
    if broker.reading is None:
        epoch, objects, position = state.newest
        changed.known = len(state.manifests) - 1
        if epoch <= broker.term and all(one in state.data for one in objects):
            changed.log, changed.reading, changed.met_a_gap = records_of(objects), position, False
            yield f"{turn.me} reads manifest {changed.known}", after
        return
    index, number = broker.reading
    if turn.bug == "last_wal_only" and index < broker.term - 1:
        index, number = broker.term - 1, 0
    if index < broker.term:
        yield _read_on(turn, index, number)
    elif broker.met_a_gap and broker.known != len(state.manifests) - 1 and turn.bug != "404_is_end":
        changed.reading = None
        yield f"{turn.me} begins again: numbers were gone and there is a newer manifest", after
    else:
        end = len(broker.log)
        changed.role, changed.reading, changed.since = "leads", None, broker.number
        if turn.bug == "local_tail_kept" and turn.me == turn.bounds.brokers - 1:
            old = state.brokers[0].log
            changed.log = old if old[:end] == broker.log else broker.log
            end = len(changed.log)
        changed.high_watermark = changed.sent = changed.began_at = end
        after.tell(changed)
        yield f"{turn.me} leads", after


def _read_on(turn, index, number):
    state, broker = turn.copy()
    wal, end = turn.line[index]
    content = state.read(wal, number)
    if number == end:
        if turn.bug == "strays_replayed":
            strays = sorted((n, one) for n, one in state.wals[wal].items() if one != FENCE and n > end)
            broker.log += tuple([record for _, one in strays for record in one[1]])
        broker.reading = index + 1, 0
    elif content not in {None, FENCE}:
        broker.reading = index, number + 1
        broker.log += content[1] if counts(content, index, turn.bug) else ()
    elif number < state.marks[wal]:
        broker.reading, broker.met_a_gap = (index, number + 1), True  # a manifest covers it, this one or a newer
    else:  # removed since the mark was read
        broker.reading = (index + 1, 0) if turn.bug == "404_is_end" else None
    return f"{turn.me} reads {wal}/{number}", state


# -- segments: data object, manifest, mark, removal. A zombie goes on with it until it learns better.


def _keeping_segments(turn):
    if turn.broker.role not in {"leads", "gives"} or not (turn.bounds.manifests or "merge" in turn.bounds.acts):
        return
    state, broker = turn.state, turn.broker
    newest = state.manifests[broker.known] if broker.known >= 0 else NO_MANIFEST
    if broker.upload is None and len(state.manifests) < turn.bounds.manifests:
        yield from _uploading(turn, newest)
    if broker.upload is not None:
        yield from _naming(turn)
    yield from _marking(turn, newest)
    yield from _removing(turn)
    yield from _sweeping(turn, newest)


def _uploaded(turn, one, objects, position, label):
    state, broker = turn.copy()
    if one is not None:
        state.data |= {one}
    broker.upload = objects, position
    return f"{turn.me} {label}", state


def _uploading(turn, newest):
    """The log may be cut after a safe object of the broker's own term, and where its term began."""
    broker, acts, epoch = turn.broker, turn.bounds.acts, turn.broker.term
    covered = len(records_of(newest.objects))
    cuts = {broker.ends[number]: (epoch, number + 1) for number in range(broker.since, broker.safe)}
    for end, position in cuts.items():
        if end > covered:
            one = epoch, covered, broker.log[covered:end]
            yield _uploaded(turn, one, (*newest.objects, one), position, f"uploads to {end}")
    if broker.began_at > covered:
        one = epoch, covered, broker.log[covered : broker.began_at]
        yield _uploaded(turn, one, (*newest.objects, one), (epoch, broker.since), "uploads what it took over")
    if "sweep" in acts and broker.known >= 0 and newest.epoch < epoch:
        yield _uploaded(turn, None, newest.objects, newest.position, "says that manifests are its own now")
    if "rewrite" in acts and len(newest.objects) == 1 and newest.objects[0][0] != epoch:
        one = epoch, 0, records_of(newest.objects)
        yield _uploaded(turn, one, (one,), newest.position, "compacts")


def _naming(turn):
    """Make the next manifest, or find that another broker has."""
    me, before = turn.me, turn.broker
    state, broker = turn.copy()
    broker.upload = None
    if before.known + 1 == len(state.manifests) or turn.bug == "manifest_ignores_others":
        state.manifests += (Manifest(before.term, *before.upload),)
        broker.known = len(state.manifests) - 1
        yield f"{me} makes manifest {broker.known}", state
    else:
        broker.known = len(state.manifests) - 1
        if state.newest.epoch > before.term and turn.bug != "old_epoch_goes_on":
            broker.role = "over"
        yield f"{me} finds manifest {broker.known} of another", state
    index, number = before.upload[1]
    if turn.bug == "trim_before_manifest" and index == before.term and turn.state.marks[me] < number:
        state = turn.state.copy()
        state.marks[me] = number
        state.remove(me, number)
        yield f"{me} trims too early", state


def _marking(turn, newest):
    me, broker = turn.me, turn.broker
    if broker.removing is not None:
        return
    if "trim" in turn.bounds.acts and broker.known >= 0:
        index, number = newest.position
        covered = turn.line[:index] + ([(turn.line[index][0], number)] if index < len(turn.line) else [])
        for wal, upto in covered:
            if upto and turn.state.marks[wal] < upto:
                state, changed = turn.copy()
                changed.removing = wal, upto
                if turn.bug != "trim_without_mark":
                    state.marks[wal] = upto
                yield f"{me} marks {wal} up to {upto}", state
    upto = max(broker.made, default=-1) + 1 if turn.bug == "merge_unsafe" else broker.safe
    if "merge" in turn.bounds.acts and turn.state.marks[me] < upto:
        state, changed = turn.copy()
        changed.removing = me, upto
        state.marks[me] = upto
        merged = {number: one for number, one in state.wals[me].items() if number < upto and one != FENCE}
        state.merged[me] = {**state.merged[me], **merged}
        yield f"{me} merges up to {upto}", state


def _removing(turn):
    if turn.broker.removing:
        state, broker = turn.copy()
        wal, upto = turn.broker.removing
        broker.removing = None
        state.remove(wal, upto)
        yield f"{turn.me} removes {wal} up to {upto}", state


def _sweeping(turn, newest):
    """What the newest manifest does not name goes, unless the key says that it is a later leader's."""
    state, broker, bug = turn.state, turn.broker, turn.bug
    is_current = broker.known == len(state.manifests) - 1 and broker.known >= 0 and broker.upload is None
    is_own = newest.epoch == broker.term or bug == "sweep_before_manifest"
    if "sweep" not in turn.bounds.acts or not is_current or not is_own:
        return
    for one in state.data - set(newest.objects[1:] if bug == "delete_named" else newest.objects):
        if one[0] <= broker.term or bug == "sweep_any_epoch":
            after = state.copy()
            after.data -= {one}
            yield f"{turn.me} sweeps {one}", after


# -- the wire


def _arriving(state, bounds, bug):
    for sent in state.wire:
        after = state.copy()
        after.wire -= {sent}
        if isinstance(sent, Append):
            is_free = len(state.journal) == sent.number
            if is_free or (bug == "entries_taken_blindly" and len(state.journal) < bounds.entries):
                after.journal += (sent.entry,)
            yield f"entry {tuple(sent.entry)} arrives", after
        else:
            after.create(sent.wal, sent.number, sent.content)
            if sent.repeats:
                after.wire |= {sent._replace(repeats=sent.repeats - 1)}
            yield f"{sent.wal}/{sent.number} arrives", after
