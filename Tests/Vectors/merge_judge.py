"""What a copy of a vault must have after a merge, by who knew what: events, and the judge of a file.

Nothing here knows the rule of a merge.
"""

import functools
import math
from collections import Counter
from dataclasses import dataclass, replace

import vault_changes as c
import vault_history as h
import vault_reader as r
import vault_records as p
from crash_histories import KEY
from vector_bases import DAY, NOW


class Wrong(Exception):
    """A result that no merge may have: its kind, and more about it."""


@dataclass(frozen=True)
class Event:
    """A change of a name. Sets of events are the bits of a number."""

    name: str
    value: bytes  # None: a removal
    past: int  # the events of this name that its copy knew
    erases: bool  # it keeps nothing of them
    time: int

    def __str__(self):
        value = self.value.decode() if self.value else "removed"
        return f"{self.name} = {value}" + ", keeps nothing" * self.erases


@dataclass(frozen=True)
class Copy:
    """A file and what it knows."""

    file: bytes
    known: int = 0
    limits: int = 1  # the events that set a history limit
    slots: frozenset = frozenset()  # ids of all key slots that were ever added under this master key
    removed: frozenset = frozenset()
    master: int = 0
    dropped: int = 0  # puts that a history limit may have dropped
    picked: frozenset = frozenset()  # names of which it knows an event and maybe not its past
    # The removals that it has only because one commit was taken, and what the taker knew of what they knew. Of what it did
    # not know, nothing is passed on.
    alone: frozenset = frozenset()
    limit: int = 0  # the event that set its history limit

    @property
    def surely(self):
        """The events that it does not only have because one commit was taken."""
        return self.known & ~sum({1 << event for event, _ in self.alone})


@dataclass(frozen=True)
class Shown:
    """What a file shows of a name."""

    present: bytes
    conflicts: frozenset
    readable: frozenset
    stored: frozenset  # in any record of the file
    versions: int  # the number of those that are not in conflict
    nothing: bool  # what is stored next, and told nothing, keeps nothing
    is_known: bool  # the file has a record of it

    @property
    def seen(self):
        return self.conflicts | ({self.present} - {None})

    def __str__(self):
        text = lambda values: " ".join(sorted(one.decode() for one in values)) or "nothing"
        more = "".join(f", {what} {text(values)}" for what, values in (
            ("in conflict", self.conflicts), ("readable", self.readable), ("stored", self.stored)) if values)  # fmt: skip
        return f"[present {text({self.present} - {None})}{more}{', keeps nothing' * self.nothing}]"


def takes_over_nothing(entries):
    """Whether a put of the name that is told nothing keeps nothing."""
    return bool(c.told({"put": {}}, entries)["put"].get("keeps_nothing"))


def bits(events):
    """Their places."""
    while events:
        yield (events & -events).bit_length() - 1
        events &= events - 1


class Judge:
    """Knows the events of a history, and judges its files. Histories set the names, modes, clocks and key slots."""

    def __init__(self, names, lookup_key, service, limit, modes):
        self.names, self.modes = names, modes
        self.lookup = {name: p.lookup_id(lookup_key, service, name) for name in names}
        self.events, self.limit_events, self.apart = [], [(limit, 0)], Counter()
        self.time, self.skews = NOW, [0]

    @property
    def latest(self):
        """What no clock is ahead of."""
        return self.time + max(self.skews) * DAY

    def read(self, file):
        return r.read_vault(file, KEY)

    def slot_ids(self, file):
        return frozenset(slot.id for slot in self.read(file).header.slots)

    def limit_of(self, copy):
        history = self.read(copy.file).root.history
        return history.versions, history.days

    def shown(self, file, name):
        vault = self.read(file)
        entries = vault.entries.get(self.lookup[name], [])
        live, now = h.live(entries), self.latest
        lost = [one.entry.value for one in h.versions(entries, p.HistoryLimit(), now) if h.is_in_conflict(one.entry, entries[-1])]
        versions = [one.entry.value for one in h.versions(entries, vault.root.history, now)]
        stored = frozenset(one.value for one in entries if one.record.is_put)
        nothing = takes_over_nothing(entries)
        present = [live.value] if live else []
        readable = frozenset([*versions, *present])
        return Shown(*(present or [None]), frozenset(lost), readable, stored, len(versions) - len(lost), nothing, bool(entries))

    def of(self, known, name):
        return [at for at in bits(known) if self.events[at].name == name]

    def past(self, known, name):
        return sum(1 << at for at in self.of(known, name))

    def heads(self, known, name):
        own = self.of(known, name)
        before = functools.reduce(int.__or__, (self.events[at].past for at in own), 0)
        return [at for at in own if not before >> at & 1]

    def put_heads(self, known, name):
        return [at for at in self.heads(known, name) if self.events[at].value is not None]

    def values(self, events):
        return {self.events[at].value for at in events} - {None}

    def knew(self, known, name, of):
        """The events that a known one of which `of` is true knew."""
        own = (self.events[at] for at in self.of(known, name))
        return functools.reduce(int.__or__, (one.past for one in own if of(one)), 0)

    def dead(self, copy, name, of):
        """The same for a copy: of a removal that was taken alone, what its taker knew too."""
        taken = (past for at, past in copy.alone if self.events[at].name == name and of(self.events[at]))
        return functools.reduce(int.__or__, taken, self.knew(copy.surely, name, of))

    def outside(self, known, name, events):
        """The values of the known puts that are not among these events, and those of which all are."""
        every = self.values(self.of(known, name))
        some = self.values(at for at in self.of(known, name) if not events >> at & 1)
        return some, every - some

    def wrong(self, kind, *more, promised=True):
        """A wrong result ends the history, unless it was not promised: below a floor only heads are."""
        if promised and ("floor" not in self.modes or "head" in kind and kind.endswith("is lost")):
            raise Wrong(kind, " ".join(str(one) for one in more))
        self.apart[kind] += 1

    def judge(self, copy, is_rewritten):
        """Judges the file, and returns the copy with what its history limit has dropped."""
        for name in self.names:
            shown, wanted = self.shown(copy.file, name), self.values(self.put_heads(copy.known, name))
            erased = self.dead(copy, name, lambda one: one.erases)
            alive, dead = self.outside(copy.known, name, erased)
            if name in copy.picked:
                self.judge_picked(copy, name, shown, wanted)
            else:
                self.judge_heads(name, shown, wanted, copy.known)
            back = dead & (shown.stored if is_rewritten else shown.readable)
            if is_rewritten and shown.stored - shown.readable and not self.limit_of(copy)[1]:  # ages are of no clock here
                self.wrong("a version is stored that the limit drops", name, shown)
            if back:
                self.wrong("picked: " * (name in copy.picked) + "an erased value is there", name, back, "of", shown)
            if name not in copy.picked:
                self.judge_nothing(copy, name, shown)
                copy = self.judge_versions(copy, name, shown, alive - shown.readable - wanted, erased)
        self.judge_slots(copy)
        return copy

    def judge_heads(self, name, shown, wanted, known):
        lost, more = wanted - shown.seen, shown.seen - wanted
        if lost:
            kind = "a head is only a version" if lost <= shown.readable else "a head is lost"
            self.wrong(kind, name, "has", shown, "instead of", wanted)
        elif more and not wanted:
            self.wrong("a removed value is present", name, "has", shown)
        elif more:
            kind = "what is no head is in conflict" if shown.present in wanted else "what is no head is present"
            self.wrong(kind, name, "has", shown, "instead of", wanted)
        heads = self.put_heads(known, name)
        newest = max((self.events[at].time for at in heads), default=0)
        if heads and shown.present not in self.values(at for at in heads if self.events[at].time == newest):
            self.wrong("an older head is present", name, "has", shown)
        if shown.present in shown.conflicts:
            self.wrong("a value is in conflict with itself", promised=False)

    def judge_picked(self, copy, name, shown, wanted):
        """After one event was taken without its past, no head is lost, and nothing returns that a removal knew."""
        if wanted - shown.readable:
            self.wrong("picked: a head is lost", name, "has", shown, "instead of", wanted)
        gone = self.outside(copy.known, name, self.dead(copy, name, lambda one: one.value is None))[1]
        if shown.seen & gone:
            self.wrong("picked: a removed value is present", name, "has", shown, "instead of", wanted)
        elif shown.seen - wanted:
            self.wrong("picked: more is present or in conflict", promised=False)

    def judge_nothing(self, copy, name, shown):
        marks = {self.events[at].erases for at in self.put_heads(copy.known, name)}
        if marks == {not shown.nothing}:
            self.wrong("keeps nothing is " + ("made up" if shown.nothing else "lost"), name, "has", shown)

    def judge_versions(self, copy, name, shown, missing, erased):
        """What is missing must have been dropped on the way, or there is a full number of others."""
        versions, days = self.limit_of(copy)
        own = [at for at in self.of(copy.known & ~erased, name) if self.events[at].value in missing]
        unexcused = self.values(at for at in own if not copy.dropped >> at & 1)
        oldest = min((self.events[at].time for at in self.of(copy.known, name)), default=self.latest)
        is_full = shown.versions >= versions or days and self.latest - oldest > days * DAY
        if unexcused and not is_full:
            self.wrong("an earlier version is lost", name, "has", shown, "without", unexcused)
        return replace(copy, dropped=copy.dropped | sum(1 << at for at in own))

    def judge_limit(self, copy, ours, theirs):
        """Returns the copy with the event that its limit is of.

        Whoever knows the limit of the other decides. If nobody does, the larger one counts; if both do, one of them. No
        known change knew that one.
        """
        sides = [one for one, other in ((ours, theirs), (theirs, ours)) if one.limits >> other.limit & 1]
        if not sides:
            size = lambda one: (self.limit_of(one)[0], self.limit_of(one)[1] or math.inf)
            sides = [one for one in (ours, theirs) if size(one) == max(size(ours), size(theirs))]
        before = functools.reduce(int.__or__, (self.limit_events[at][1] for at in bits(copy.limits)), 0)
        sides = [one for one in sides if not before >> one.limit & 1]
        allowed = [one for one in sides if self.limit_of(one) == self.limit_of(copy)]
        if not allowed and not ours.picked | theirs.picked:
            self.wrong("the history limit is another", self.limit_of(copy), "of", self.limit_of(ours), self.limit_of(theirs))
        latest = max((one.limit for one in allowed), default=max(ours.limit, theirs.limit))
        return replace(copy, limit=latest)

    def judge_slots(self, copy):
        vault = self.read(copy.file)
        found = {slot.id for slot in vault.header.slots}
        traces = {one.slot_id for one in vault.root.former if one.is_trace}
        if found & copy.removed:
            self.wrong("a removed key slot is there", len(found & copy.removed))
        if copy.slots - copy.removed - found and not copy.picked:
            self.wrong("an added key slot is not there", len(copy.slots - copy.removed - found))
        if found - copy.slots and not copy.picked:
            self.wrong("a key slot is from nowhere")
        if copy.removed - traces and not copy.picked:
            self.wrong("a removed key slot leaves no trace", len(copy.removed - traces))
