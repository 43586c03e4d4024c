"""How two copies of a vault become one: VaultMerging.md."""

from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace

import vault_changes as c
import vault_format as f
import vault_history as h
import vault_reader as r
import vault_records as p
import vault_writer as w
from vault_format import require

MERGED_PAIRS = 2048


@dataclass
class Report:
    """What a merge found, by lookup id."""

    gone: set = field(default_factory=set)  # the secrets of ours that theirs has erased
    refused: set = field(default_factory=set)  # what a merge that undoes would undo
    left_out: set = field(default_factory=set)  # a change of theirs that the ancestor has and ours does not
    is_successor: bool = True  # whether whoever saw theirs accepts the merge
    taken: set = field(default_factory=set)  # the changes of both that were taken without the others of their branch


def merge(path, other, credential, random=w.system_random, now=None, ancestor=None, undoes=False):
    """Writes the vault at `path` anew with what was done to its copy at `other`. Returns its state, and a report."""
    with c.locked(path) as descriptor, c.locked(other) as other_descriptor:
        _, ours = c.opened_for_writing(descriptor, credential)
        _, theirs = c.opened_for_writing(other_descriptor, credential)
        description = c.judged({} if now is None else {"now": now}, ours, theirs)
        data, state, report = merged_file(ours, theirs, opened_ancestor(ancestor, ours), description, random, undoes)
        c.replace_file(path, data)
        return state, report


def opened_ancestor(file, ours):
    """The ancestor, if there is one."""
    if not file:
        return None
    header = f.parse_header(file)
    require(header.vault_id == ours.header.vault_id, "the ancestor is another vault", outcome=f.ANOTHER_VAULT)
    require(header.commitment == ours.header.commitment, "the ancestor has another master key", outcome=f.ANOTHER_KEY)
    return r.read_with_master(file, header, ours.master)


def merged_file(ours, theirs, ancestor, description, random, undoes=False):
    """The bytes of the merge, its state, and a report."""
    entries, sequence, recent, limit, report = merged(ours, theirs, ancestor, description["time"], undoes)
    for key, found in ours.entries.items():
        was_there = h.live(found) or h.versions(found, ours.root.history, description["now"])
        if was_there and not h.kept(entries.get(key, []), limit, description["now"]):
            report.gone.add(key)
    description = {**description, "taken": report.taken}
    origin = limit.origin and {"sequence": limit.origin[0], "tag": limit.origin[1].hex()}
    history = {"versions": limit.versions, "days": limit.days, "sequence": limit.sequence, "origin": origin}
    data, state = c.new_file(ours, entries, sequence, recent, {**description, "history": history}, random, other=theirs)
    return data, state, report


def merged(ours, theirs, ancestor=None, time=0, undoes=False):
    """The entries of both vaults, the sequence of the root that has them, its recent changes, its limit, and a report."""
    require(ours.header.vault_id == theirs.header.vault_id, "another vault", outcome=f.ANOTHER_VAULT)
    require(ours.master == theirs.master, "the vaults do not have one master key", outcome=f.ANOTHER_KEY)
    copies = [Copy(vault) for vault in (ours, theirs, ancestor) if vault]
    common = {*copies[0].states} & {*copies[1].states}
    require(common, "the vaults have no change in common", outcome=f.ROLLED_BACK)
    parted, agreed = max(common)[0], agreement(*copies[:2])
    sequence, entries, report = max(ours.state.sequence, theirs.state.sequence), {}, Report()
    for key in sorted({*ours.entries, *theirs.entries}):
        secret = Secret(key, [copy.ones(key) for copy in copies], copies, parted, agreed, undoes)
        found = secret.merge(time, report)
        report.taken |= {one.birth for one in found if one.copy is copies[1] and one.is_news and one.birth[1]}
        sequence, found = numbered(found, sequence)
        if found:
            entries[key] = found
    pairs, floor = copies[0].states, copies[0].floor
    # Only if theirs comes from the ancestor, and ours has all of that, does the merge have all of theirs.
    report.is_successor = not ancestor or not undoes and copies[2].state in {*copies[0].states} & {*copies[1].states}
    report.taken |= {*ours.root.taken}
    if report.is_successor:
        shown = copies[0].tags | copies[1].tags
        report.taken = {one for one in (*ours.root.taken, *theirs.root.taken) if one[1] not in shown}
        pairs, floor = sorted({*copies[0].states, *copies[1].states}), max(copy.floor for copy in copies[:2])
    sequence += 1
    limit, birth = merged_limit(copies, parted, agreed, sequence, undoes)
    if birth and birth[1] and not report.is_successor:
        report.taken.add(birth)
    return entries, sequence, c.latest(pairs, floor, MERGED_PAIRS), limit, report


def agreement(ours, theirs):
    """The sequence of the last state before the first one that only one file shows, from the higher floor on, or 0."""
    floor, shown = max(ours.floor, theirs.floor), ({*ours.states}, {*theirs.states})
    first = min((number for number, _ in shown[0] ^ shown[1] if number >= floor), default=f.U64_LIMIT)
    return max((number for number, _ in shown[0] & shown[1] if floor <= number < first), default=0)


class Copy:
    """One of the files, and the states that it shows."""

    def __init__(self, vault):
        self.vault, self.states, self.floor = vault, c.changes_of(vault), vault.root.floor
        self.tags, self.taken = {tag for _, tag in self.states}, {*vault.root.taken}
        self.state = vault.state.sequence, vault.state.tail_tag

    def birth(self, change):
        """The sequence that a record or a limit had first, and the tag of the lowest state that had it, or None."""
        number = change.sequence
        if change.origin:
            return change.origin
        return number, self.states[bisect_left(self.states, (number, b""))][1] if number >= self.floor else None

    def knows(self, change, birth, parted):
        """Whether this file has or had a change of the other one. The files parted at the sequence `parted`."""
        return change.sequence <= parted or birth[1] in self.tags or birth in self.taken

    def ones(self, key):
        return [One(entry, self) for entry in h.remembered(self.vault.entries.get(key, []))]


class One:
    """An entry of a file, or one that the merge adds."""

    def __init__(self, entry, copy=None):
        self.entry, self.record, self.copy = entry, entry.record, copy
        self.sequence, self.origin, self.is_put = self.record.sequence, self.record.field(p.ORIGIN), self.record.is_put
        self.birth = copy.birth(self) if copy else None
        self.twin, self.is_known, self.is_left_out, self.is_new, self.is_unmarked = None, False, False, True, False
        self.beside = None

    @property
    def is_news(self):
        return not self.is_known and not self.is_left_out

    @property
    def rank(self):
        return self.is_put, self.record.time, self.birth[0], self.birth[1] or b""


def pairs(ones, others):
    """The entries of both lists that are the same change."""
    by_birth, by_time, found = {}, defaultdict(deque), []
    for other in others:
        by_birth[other.is_put, other.birth] = other
        by_time[other.is_put, other.birth[0], other.record.time].append(other)
    for one in ones:
        other = by_birth.get((one.is_put, one.birth)) if one.birth[1] else None
        if not other:  # the state that had one of them first is below the floor
            alike = by_time.get((one.is_put, one.birth[0], one.record.time), ())
            other = next((two for two in alike if not (one.birth[1] and two.birth[1])), None)
        if other:
            found.append((one, other))
    return found


def heads(ones):
    """The newest of these that is not left out, as the last, and those that stand beside it or beside the last of all."""
    here = [one for one in ones if not one.is_left_out]
    beside = [here[-1].entry, ones[-1].entry] if here else []
    return [one for one in here if one is here[-1] or any(h.stands_beside(one.entry, other) for other in beside)]


def puts(ones):
    return [one for one in heads(ones) if one.is_put]


class Secret:
    """The entries of one secret that count in each file."""

    def __init__(self, key, sides, copies, parted, agreed, undoes):
        self.key, (self.ours, self.theirs, before) = key, [*sides, []][:3]
        self.present = next(iter(puts(self.theirs)[-1:]), None)
        theirs, ancestors = puts(self.theirs), puts(before)
        is_same = len(theirs) == len(ancestors) == len(pairs(theirs, ancestors))
        # What the change from theirs to the ancestor has stored, and ours has still.
        mine = [one for one, _ in pairs(puts(self.ours), ancestors)]
        self.undoable = [one for one in mine if not pairs([one], theirs)]
        is_undoable = len(self.undoable) == len(puts(self.ours)) and (self.undoable or not ancestors)
        has_changed = len(copies) == 3 and not is_same
        is_other = len(copies) == 3 and is_same and not undoes
        self.is_undone = undoes and has_changed and bool(is_undoable and (self.ours or self.present))
        self.is_refusable, self.is_back = has_changed and not undoes, not ancestors
        if theirs:
            is_unknown = any(not copies[0].knows(one, one.birth, parted) for one in theirs)
        else:
            is_unknown = any(copies[1].knows(one, one.birth, parted) for one in puts(self.ours))
        of_ancestor = {id(one) for one, _ in pairs(self.theirs, before)}
        shared = {id(one) for one, _ in pairs(self.theirs, self.ours)}
        late = [one for one in self.theirs if id(one) in of_ancestor and not copies[0].knows(one, one.birth, parted)]
        late = [one for one in late if id(one) not in shared]
        # Without its values, nothing of what theirs did to the secret can be taken.
        is_late = bool(theirs) and all(one in late for one in theirs)
        self.is_left_out = is_other and is_unknown or len(copies) == 3 and is_late and not undoes
        if len(copies) == 3 and (undoes or is_same or is_late):
            stays = [*puts(self.ours), *(one for one, _ in pairs(self.ours, self.theirs))]
            for one, _ in pairs(self.ours, before):
                one.is_known = not undoes and one not in stays and copies[1].knows(one, one.birth, parted)
            self.theirs = []
        else:
            for one, two in pairs(self.ours, self.theirs):
                one.twin, two.twin = two, one
            for ones, other in ((self.ours, copies[1]), (self.theirs, copies[0])):
                for one in ones:
                    one.is_known = bool(one.twin) or other.knows(one, one.birth, parted)
            for one in self.theirs:
                one.is_left_out = one in late
        for one in [*self.ours, *self.theirs]:
            one.is_new = one.sequence > agreed or bool(one.twin) and one.twin.sequence != one.sequence

    def merge(self, time, report):
        """The entries that the merge has, in their order."""
        sides = heads(self.ours), heads(self.theirs)
        standing = [one for one in sides[0] if one.is_news or one.twin in sides[1]]
        standing += [one for one in sides[1] if one.is_news]
        if self.is_left_out or any(one.is_left_out for one in self.theirs):
            report.left_out.add(self.key)
        has_news = any(one.is_news for one in sides[1])
        is_against = any(not one.is_known for one in self.undoable) or self.is_back and not puts(self.ours)
        if self.is_refusable and not has_news and is_against:
            report.refused.add(self.key)
        given, newest, is_moved = [], None, False
        if self.is_undone:
            found = [*self.ours, One(self.undoing(time))]
        elif standing:
            newest = max(standing, key=lambda one: one.rank)  # the first of equal ones
            is_ours = newest.copy is self.ours[0].copy if self.ours else False
            side, given = (self.ours, self.theirs) if is_ours else (self.theirs, self.ours)
            given = [one for one in given if one.is_news]
            kept = [one for one in side if (one.twin or one.is_news) and one is not newest]
            at = max(0, len(kept) - (not newest.is_put))
            found = [*kept[:at], *given, *kept[at:], newest]
            is_moved = newest is not side[-1]
        else:
            found = [one for one in self.ours if one.twin or one.is_news] + [one for one in self.theirs if one.is_news]
            while found and found[-1].is_put:
                found.pop()
            given, is_moved = found, True
        # A remove stays only directly after a put.
        found = [one for before, one in zip([None, *found], found) if one.is_put or before and before.is_put]
        if newest:
            newest.is_new = newest.is_new or is_moved
        is_new = False
        for one in found:
            is_new = one.is_new = is_new or one.is_new
            one.is_unmarked = bool(given) or is_moved
            stands = one in standing or one.twin in standing
            if newest and newest.is_put and one is not newest and one.is_put and stands:
                one.beside = p.CONFLICT if one.entry.value != newest.entry.value else p.TWIN
        return found

    def undoing(self, time):
        """The change that brings back what theirs has."""
        if self.present:
            fields = dict(self.present.record.fields)
            is_marked = h.keeps_no_history(self.present.record)
            for kind in (p.CONFLICT, p.TWIN, p.KEEPS_NOTHING, p.KEPT_NOTHING, p.ORIGIN):
                fields.pop(kind, None)
            if is_marked:
                fields[p.KEPT_NOTHING] = b""
            record = replace(self.present.record, time=time, fields=tuple(sorted(fields.items())))
            return r.Entry(record, self.present.entry.value)
        record = self.ours[-1].record
        return r.Entry(p.Record(p.REMOVE, record.lookup_id, 0, time, record.service, record.account), b"")


def numbered(found, sequence):
    """The last sequence, and the entries: those that are new are sealed anew."""
    number, sequence = sequence, sequence + sum(one.is_new for one in found)
    newest = sequence if found and found[-1].is_new else found[-1].sequence if found else 0
    entries = []
    for one in found:
        record, fields = one.record, dict(one.record.fields)
        if one.is_unmarked and fields.pop(p.KEEPS_NOTHING, None) is not None:
            fields[p.KEPT_NOTHING] = b""
        fields.pop(p.CONFLICT, None)
        fields.pop(p.TWIN, None)
        if one.beside:
            fields[one.beside] = p.PLACE.pack(newest)
        if one.is_new:
            number += 1
            record = replace(record, sequence=number)
            if one.copy and one.birth[1]:
                fields[p.ORIGIN] = p.PAIR.pack(*one.birth)
        record = replace(record, fields=tuple(sorted(fields.items())))
        entries.append(r.Entry(record, one.entry.value) if one.is_new else replace(one.entry, record=record))
    return sequence, entries


# The rest of the file


def merged_slots(ours, theirs):
    """The bytes of the key slots that a merge has."""
    removed = [{one.slot_id for one in vault.root.former} for vault in (ours, theirs)]
    ids = [{slot.id for slot in vault.header.slots if slot.known} for vault in (ours, theirs)]
    unknown = {slot.raw for slot in ours.header.slots if not slot.known}
    found = [slot for slot in ours.header.slots if slot.id in ids[1] or slot.id not in removed[1]]
    is_older = (theirs.state.sequence, theirs.state.tail_tag) in c.changes_of(ours)
    for slot in () if is_older else theirs.header.slots:
        is_ours = slot.id in ids[0] if slot.known else slot.raw in unknown
        if not is_ours and slot.id not in removed[0]:
            found.append(slot)
    lowest = {}
    for slot in found:
        if slot.recipient and slot.id < lowest.get(slot.recipient, slot).id:
            lowest[slot.recipient] = slot
        lowest.setdefault(slot.recipient, slot)
    return [slot.raw for slot in found if not slot.recipient or lowest[slot.recipient] is slot]


def merged_limit(copies, parted, agreed, sequence, undoes):
    """The history limit of the merge, whose root has `sequence`."""
    ours, theirs, before = [*(copy.vault.root.history for copy in copies), None][:3]
    if before and (undoes or (theirs.size, theirs.sequence, theirs.origin) == (before.size, before.sequence, before.origin)):
        limit, copy = ours, copies[0]
    else:
        known = [copies[0].knows(theirs, copies[1].birth(theirs), parted), copies[1].knows(ours, copies[0].birth(ours), parted)]
        # Of two that both know, the smaller replaced the larger.
        is_ours = known[0] if known[0] != known[1] else (largeness(ours) <= largeness(theirs)) == known[0] or ours.size == theirs.size
        limit, copy = (ours, copies[0]) if is_ours else (theirs, copies[1])
    birth = copy.birth(limit)
    has_moved = ours.sequence != theirs.sequence and copies[0].birth(ours) == copies[1].birth(theirs)
    if limit.sequence > agreed or has_moved:
        limit = replace(limit, sequence=sequence, origin=birth if birth[1] else None)
    return limit, birth if copy is copies[1] else None


def largeness(limit):
    """Of two limits that were changed apart, the higher one counts, because a loss cannot be repaired."""
    return limit.versions, limit.days or f.U64_LIMIT


def limit_of(vault):
    return vault.root.history
