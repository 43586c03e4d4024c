"""How two copies of a vault become one: VaultMerging.md."""

from bisect import bisect_left
from collections import deque
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

    taken_back: dict = field(default_factory=dict)  # what theirs takes back: its present entry, or None
    left_out: bool = False  # a change of theirs that the ancestor has and ours does not


def merge(path, other, credential, random=w.system_random, now=None, ancestor=None, take_back=False):
    """Writes the vault at `path` anew with what was done to its copy at `other`. Returns its state, and a report."""
    with c.locked(path) as descriptor, c.locked(other) as other_descriptor:
        _, ours = c.opened_for_writing(descriptor, credential)
        _, theirs = c.opened_for_writing(other_descriptor, credential)
        description = c.judged({} if now is None else {"now": now}, ours, theirs)
        data, state, report = merged_file(ours, theirs, opened_ancestor(ancestor, ours), description, random, take_back)
        c.replace_file(path, data)
        return state, report


def opened_ancestor(file, ours):
    """The ancestor, or None if it is none of this vault."""
    try:
        header = f.parse_header(file) if file else None
        is_of_vault = header and (header.vault_id, header.commitment) == (ours.header.vault_id, ours.header.commitment)
        return r.read_with_master(file, header, ours.master) if is_of_vault else None
    except f.Refused:
        return None


def merged_file(ours, theirs, ancestor, description, random, take_back=False):
    """The bytes of the merge, its state, and a report."""
    entries, sequence, recent, report = merged(ours, theirs, ancestor, description["time"], take_back)
    description = {**description, "history": merged_limit(ours, theirs, ancestor)}
    data, state = c.new_file(ours, entries, sequence, recent, description, random, other=theirs)
    return data, state, report


def merged(ours, theirs, ancestor=None, time=0, take_back=False):
    """The entries of both vaults, the sequence of the root that has them, its recent changes, and a report."""
    require(ours.header.vault_id == theirs.header.vault_id, "another vault", outcome=f.ANOTHER_VAULT)
    require(ours.master == theirs.master, "the vaults do not have one master key", outcome=f.ANOTHER_KEY)
    states = [c.changes_of(vault) for vault in (ours, theirs)]
    parted, agreed = parting(*states)[0], agreement(*states, max(ours.root.floor, theirs.root.floor))
    sequence, entries, report = max(ours.state.sequence, theirs.state.sequence), {}, Report()
    for key in sorted({*ours.entries, *theirs.entries}):
        sides = [Side(vault.entries.get(key, []), one) for vault, one in zip((ours, theirs), states)]
        before = Side(ancestor.entries.get(key, []) if ancestor else [], [])
        for side, other in zip(sides, reversed(sides)):
            side.compare(other, before, parted, agreed)
        for one in sides[1].entries:
            one.is_left_out = one.is_of_ancestor and not one.is_known
        for side in sides:
            side.find_heads()
        found, is_taken_back = merged_secret(*sides, time, take_back)
        sequence, found = numbered(found, sequence)
        report.left_out |= any(one.is_left_out for one in sides[1].entries)
        if is_taken_back:
            report.taken_back[key] = sides[1].present
        if found:
            entries[key] = found
    pairs, floor = states[0], ours.root.floor
    if not report.left_out:
        pairs, floor = sorted({*states[0], *states[1]}), max(floor, theirs.root.floor)
    return entries, sequence + 1, c.latest(pairs, floor, MERGED_PAIRS), report


def parting(ours, theirs):
    """The highest state of these that both files show."""
    common = {*ours} & {*theirs}
    require(common, "the vaults have no change in common", outcome=f.ROLLED_BACK)
    return max(common)


def agreement(ours, theirs, floor):
    """The sequence of the last of these states before the first one that only one file shows, or 0."""
    first = min((state[0] for state in {*ours} ^ {*theirs} if state[0] >= floor), default=f.U64_LIMIT)
    return max((state[0] for state in {*ours} & {*theirs} if floor <= state[0] < first), default=0)


class Side:
    """The entries of one secret in one of two files, those that count, and the states that the file shows."""

    def __init__(self, entries, states):
        self.states = states
        self.entries = [One(entry, self) for entry in h.remembered(entries)]
        self.newest, self.heads = None, []

    def compare(self, other, before, parted, agreed):
        """Finds which of the entries the other file has or knows, and which are changes of the ancestor, `before`."""
        twins, of_ancestor = (twins_of(self.entries, side.entries) for side in (other, before))
        states = set(other.states)
        for one in self.entries:
            sequence = one.record.sequence
            one.twin, one.is_of_ancestor = twins.get(id(one)), id(one) in of_ancestor
            one.is_known = one.is_shared or sequence <= parted or one.record.field(p.ORIGIN) in states
            one.is_new = sequence > agreed or one.is_shared and one.twin.record.sequence != sequence

    def find_heads(self):
        counted = [one for one in self.entries if not one.is_left_out]
        if counted:
            self.newest = counted[-1]
            self.heads = [one for one in counted[:-1] if h.is_in_conflict(one.entry, self.newest.entry)]
            self.heads.append(self.newest)

    @property
    def news(self):
        return [one for one in self.entries if one.is_news]

    @property
    def kept(self):
        return [one for one in self.entries if one.is_shared or one.is_news]

    @property
    def present(self):
        return self.newest.entry if self.newest and self.newest.record.is_put else None


def twins_of(entries, others):
    """The one among `others` that is the same change, by the id of each entry that has one."""
    found, at_sequence = {}, {other.record.sequence: other for other in others}
    for one in entries:
        other = at_sequence.get(one.record.sequence)
        if other and other.change == one.change:
            found[id(one)] = other
    for kinds in ((True, False), (False, True), (True, True)):
        taken, alike = {id(other) for other in found.values()}, {}
        for other in others:
            if id(other) not in taken and other.has_origin == kinds[1]:
                alike.setdefault(other.change, deque()).append(other)
        for one in entries:
            if id(one) not in found and one.has_origin == kinds[0] and alike.get(one.change):
                found[id(one)] = alike[one.change].popleft()
    return found


class One:
    """An entry of a side, or one that the merge adds."""

    def __init__(self, entry, side=None):
        self.entry, self.record, self.side, self.change = entry, entry.record, side, change_of(entry)
        self.twin, self.is_left_out = None, False
        self.is_new, self.is_unmarked, self.loses, self.is_stored, self.time = True, False, False, False, None
        self.is_known = self.is_of_ancestor = False

    @property
    def has_origin(self):
        return self.record.field(p.ORIGIN) is not None

    @property
    def is_shared(self):
        return self.twin is not None

    @property
    def is_news(self):
        return not self.is_known and not self.is_left_out

    @property
    def is_gone(self):
        return not self.is_shared and (self.is_known or self.is_of_ancestor)

    @property
    def rank(self):
        record = self.record
        place = max((one.record.sequence, one.record.value_tag) for one in (self, self.twin) if one)
        return record.is_put, record.time, place


def merged_secret(ours, theirs, time, take_back):
    """The merge of one secret, and whether theirs takes it back. The ancestor hides no change of ours."""
    mine = ours.newest
    standing = [one for one in ours.heads if one.is_news or one.twin in theirs.heads]
    standing += [one for one in theirs.heads if one.is_news]
    is_taken_back = (
        mine is not None and mine.is_gone and not any(one.is_news for one in theirs.heads)
        and (mine.record.is_put or theirs.present is not None)
    )  # fmt: skip
    if is_taken_back and take_back:
        standing = [one for one in standing if not one.is_gone]
    if is_taken_back and not take_back:
        found, standing = ours.entries, ours.heads
        for one in ours.entries:
            if one.is_known and not one.is_shared:
                one.is_stored = one.is_new = True
                one.time = max([time, *(head.record.time for head in ours.heads[:-1])]) if one is mine else None
    elif is_taken_back and not standing:
        found = [*ours.entries, One(taking_back(ours, theirs, time))]
    elif standing:
        newest = max(standing, key=lambda one: one.rank)  # the first of equal ones
        side, given = (ours, theirs.news) if newest.side is ours else (theirs, ours.news)
        kept = [one for one in side.kept if one is not newest]
        at = max(0, len(kept) - (not newest.record.is_put))
        found = [*kept[:at], *given, *kept[at:], newest]
        newest.is_new = newest.is_new or newest is not side.newest
        for one in found if given or newest is not side.newest else ():
            one.is_unmarked = True
    else:
        found = ours.kept
        found += [mine] if found and mine not in found else []
    # A remove stays only directly after a put.
    found = [one for before, one in zip([None, *found], found) if one.record.is_put or before and before.record.is_put]
    is_new = False
    for one in found:
        is_new = one.is_new = is_new or one.is_new
        stands = one in standing or one.is_shared and one.twin in standing
        one.loses = stands and one.record.is_put and found[-1].record.is_put and one.entry.value != found[-1].entry.value
    return found, is_taken_back


def taking_back(ours, theirs, time):
    """The change that takes a secret back: to what theirs has."""
    present, record = theirs.present, ours.newest.record
    if present:
        fields = tuple(one for one in present.record.fields if one[0] not in (p.CONFLICT, p.ORIGIN))
        return r.Entry(replace(present.record, time=time, fields=fields), present.value)
    fields = ((p.KEEPS_NOTHING, b""),) if not theirs.entries and ours.newest.is_known else ()
    return r.Entry(p.Record(p.REMOVE, record.lookup_id, 0, time, record.service, record.account, fields=fields), b"")


def numbered(found, sequence):
    """The last sequence, and the entries: those that are new are sealed anew."""
    number, sequence = sequence, sequence + sum(one.is_new for one in found)
    newest = sequence if found and found[-1].is_new else found[-1].record.sequence if found else 0
    entries = []
    for one in found:
        record, fields = one.record, dict(one.record.fields)
        if one.is_unmarked:
            fields.pop(p.KEEPS_NOTHING, None)
        fields.pop(p.CONFLICT, None)
        if one.loses:
            fields[p.CONFLICT] = p.PLACE.pack(newest)
        if one.is_new:
            number += 1
            record = replace(record, sequence=number)
            if one.is_stored:
                record = record if one.time is None else replace(record, time=one.time)
                fields.pop(p.ORIGIN, None)
            elif one.side:
                fields[p.ORIGIN] = p.PAIR.pack(*(one.record.field(p.ORIGIN) or covering(one)))
        record = replace(record, fields=tuple(sorted(fields.items())))
        entries.append(r.Entry(record, one.entry.value) if one.is_new else replace(one.entry, record=record))
    return sequence, entries


def covering(one):
    """The lowest state of its file that has the entry."""
    return one.side.states[bisect_left(one.side.states, (one.record.sequence, b""))]


def change_of(entry):
    """What two entries have in common that are one change, although a merge gave one of them another sequence."""
    record = entry.record
    own = (p.CONFLICT, p.KEEPS_NOTHING, p.ORIGIN)
    holder = "put" if record.is_put else "remove"
    fields = tuple(pair for pair in p.rewritten_fields(record.fields, holder) if pair[0] not in own)
    return record.kind, record.time, record.created, fields, entry.value


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


def merged_limit(ours, theirs, ancestor):
    """The history limit, as a description has it."""
    one, two = limit_of(ours), limit_of(theirs)
    parted = parting(c.changes_of(ours), c.changes_of(theirs))
    if ancestor and one != two and (ancestor.state.sequence, ancestor.state.tail_tag) == parted:
        if limit_of(ancestor) == one:
            return vars(two)
        if limit_of(ancestor) == two:
            return vars(one)
    if (one.versions == 0) != (two.versions == 0):
        return vars(two if one.versions == 0 else one)
    days = 0 if 0 in (one.days, two.days) else max(one.days, two.days)
    return {"versions": max(one.versions, two.versions), "days": days}


def limit_of(vault):
    return c.limit_in(vault.root.fields)
