"""How two copies of a vault become one: VaultMerging.md."""

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
    parted, sequence = parting(ours, theirs), max(ours.state.sequence, theirs.state.sequence)
    entries, report = {}, Report()
    for key in sorted({*ours.entries, *theirs.entries}):
        sides = [vault.entries.get(key, []) if vault else [] for vault in (ours, theirs, ancestor)]
        one = Secret(key, *sides, parted, report, time, take_back)
        for number, found in one.merged(sequence):
            sequence = number or sequence
            # A remove whose put the other side dropped or removed is not needed.
            if found.record.is_put or key in entries and entries[key][-1].record.is_put:
                entries.setdefault(key, []).append(found)
    pairs, floor = c.changes_of(ours), ours.root.floor
    if not report.left_out:
        pairs, floor = sorted({*pairs, *c.changes_of(theirs)}), max(floor, theirs.root.floor)
    return entries, sequence + 1, c.latest(pairs, floor, MERGED_PAIRS), report


def parting(ours, theirs):
    common = set(c.changes_of(ours)) & set(c.changes_of(theirs))
    require(common, "the vaults have no change in common", outcome=f.ROLLED_BACK)
    return max(common)[0]


class Secret:
    """The entries of one secret in two or three files."""

    def __init__(self, key, ours, theirs, ancestor, parted, report, time, take_back):
        self.key, self.ours, self.theirs, self.parted = key, ours, theirs, parted
        self.of_ancestor = [change_of(one) for one in ancestor]
        self.report, self.time, self.take_back = report, time, take_back

    def is_old(self, entry):
        return entry.record.sequence <= self.parted

    def is_known(self, entry):
        return self.is_old(entry) or change_of(entry) in self.of_ancestor

    def merged(self, sequence):
        """Pairs of a new sequence, or 0 for an entry that keeps its own, and the entry."""
        ours, theirs = self.ours, self.theirs
        changes, their_changes = ([change_of(one) for one in side] for side in (ours, theirs))
        if any(self.is_known(one) and not self.is_old(one) and change_of(one) not in changes for one in theirs):
            self.report.left_out = True
        their_change = bool(theirs) and not self.is_known(theirs[-1])
        newest = ours[-1] if ours else None
        present = h.live(theirs)
        if (
            newest and not their_change and self.is_known(newest) and change_of(newest) not in their_changes
            and (newest.record.is_put or present)
        ):  # fmt: skip
            more = self.taken_back(present)
            lost_to = [] if more else [one for one in ours if h.is_in_conflict(one, newest)]
            yield from numbered([*ours, *more], sequence, lost_to)
            return
        their_old = [change_of(one) for one in theirs if self.is_old(one)]
        old = [one for one in ours if self.is_old(one) and change_of(one) in their_old]
        added = [one for one in ours if not self.is_old(one)]
        their_added = [one for one in theirs if not self.is_known(one)] if their_change else []
        if any(one.record.field(p.KEEPS_NOTHING) is not None for one in (*added, *their_added)):
            old = []
        added, their_added = h.remembered(added), h.remembered(their_added)
        rank, their_rank = rank_of(added, their_changes), rank_of(their_added, changes)
        sides = (added, their_added, their_rank) if their_rank > rank else (their_added, added, rank)
        losing, won, _ = sides
        yield from ((0, one) for one in old)
        won_changes = [change_of(one) for one in won]
        lost = [one for one in losing if change_of(one) not in won_changes]
        lost_to = [one for one in won if h.is_in_conflict(one, won[-1])]
        if losing and change_of(losing[-1]) in won_changes[-1:]:
            lost_to += [one for one in lost if h.is_in_conflict(one, losing[-1])]
        elif losing and min(rank, their_rank)[0] and losing[-1].record.is_put and won[-1].record.is_put:
            lost_to.append(losing[-1])
        yield from numbered([*lost, *won], sequence, lost_to, won if lost else ())

    def taken_back(self, present):
        """The change that takes the secret back, if it is to be taken back."""
        self.report.taken_back[self.key] = present
        if not self.take_back:
            return []
        if present:
            fields = tuple(one for one in present.record.fields if one[0] != p.CONFLICT)
            return [r.Entry(replace(present.record, time=self.time, fields=fields), present.value)]
        newest = self.ours[-1]
        fields = ((p.KEEPS_NOTHING, b""),) if not self.theirs and self.is_old(newest) else ()
        name = newest.record.service, newest.record.account
        return [r.Entry(p.Record(p.REMOVE, self.key, 0, self.time, *name, fields=fields), b"")]


def rank_of(added, changes_of_other):
    """What decides which file wins: the higher rank. A file that has not changed the secret has the lowest."""
    if not added:
        return ()
    newest = added[-1].record
    return change_of(added[-1]) not in changes_of_other, newest.is_put, newest.time, newest.sequence, newest.value_tag


def numbered(entries, sequence, lost_to, unmarked=()):
    """Pairs of a new sequence and an entry that is sealed anew. `lost_to` are those that lost to the last put, and
    `unmarked` those that do not keep nothing, because entries of the other file come before them."""
    newest = sequence + len(entries)
    for number, one in enumerate(entries, start=sequence + 1):
        fields = dict(one.record.fields)
        if any(one is other for other in unmarked):
            fields.pop(p.KEEPS_NOTHING, None)
        if any(one is other for other in lost_to):
            fields[p.CONFLICT] = p.PLACE.pack(newest)
        record = replace(one.record, sequence=number, fields=tuple(sorted(fields.items())))
        yield number, r.Entry(record, one.value)


def change_of(entry):
    """What two entries have in common that are one change, although a merge gave one of them another sequence."""
    record = entry.record
    fields = tuple(pair for pair in record.fields if pair[0] not in (p.CONFLICT, p.KEEPS_NOTHING))
    return record.kind, record.time, record.created, fields, entry.value


# The rest of the file


def merged_slots(ours, theirs):
    """The bytes of the key slots that a merge has."""
    removed = [{one.slot_id for one in vault.root.former} for vault in (ours, theirs)]
    ids = [{slot.id for slot in vault.header.slots if slot.known} for vault in (ours, theirs)]
    unknown = {slot.raw for slot in ours.header.slots if not slot.known}
    found = [slot for slot in ours.header.slots if slot.id in ids[1] or slot.id not in removed[1]]
    for slot in theirs.header.slots:
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
    if ancestor and one != two:
        state = ancestor.state.sequence, ancestor.state.tail_tag
        if state in c.changes_of(theirs) and state[0] >= parting(ours, theirs):
            if limit_of(ancestor) == one:
                return vars(two)
            if limit_of(ancestor) == two:
                return vars(one)
    days = 0 if 0 in (one.days, two.days) else max(one.days, two.days)
    return {"versions": max(one.versions, two.versions), "days": days}


def limit_of(vault):
    return c.limit_in(vault.root.fields)
