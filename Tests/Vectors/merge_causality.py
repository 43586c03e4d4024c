#!/usr/bin/env python3
"""Random merges of several copies of a vault, judged by who knew what when they changed it.

usage: merge_causality.py [--merges N] [--seed S] [--mode MODE]... [--write DIRECTORY]

Each change is an event that knows the events of its copy, and a merge knows those of both sides: nothing here knows the
rule of a merge. A *head* is a known event that no other known one of its name knew. Present values are the values of
heads, the others are in conflict, and what a known removal or erasure knew does not come back. Each history has the given
modes, or some that its seed chooses:

still, skewed       clocks that stand still, and those that differ by up to 200 days
twins               equal values
limit-0, limits     a history limit of 0; limits that change
drops, purges       rewrites that drop versions; many erasures
slots               key slots are added and removed, and master keys changed
git                 one change is taken from a branch, or taken back; copies go on from old files
attack              theirs and the ancestor are any files that were ever written
floor               files list few recent changes, so that a merge cannot know all: only heads must not be lost
plain               none of these

What is not promised, such as what comes back below a floor, is counted apart. Of each kind of wrong result the shortest
history is printed: `--merges 1 --seed SEED` with the same modes runs it again.

With --write, the files of each merge and its result are written for another implementation, except those of floors.

Exit status: 0 none is wrong, 1 otherwise, 2 wrong usage.
"""

import argparse
import functools
import json
import os
import random
import sys
import time
from collections import Counter
from dataclasses import replace

import crash_histories as ch
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_merging as m
import vault_reader as r
import vault_records as p
from crash_histories import Disk, File, KEY
from merge_judge import Copy, Event, Judge, Wrong, bits
from vector_bases import DAY, NOW, key_slot, put, remove
from vector_merges import case_of

OURS, THEIRS = "/v/ours", "/v/theirs"
MODES = ("still", "skewed", "twins", "limit-0", "limits", "drops", "purges", "slots", "git", "attack", "floor")
CAPACITY = c.KEPT_PAIRS, m.MERGED_PAIRS
WIDE = (50, 0)  # a limit that drops nothing


# The interface of merges


def merge(disk, ours, theirs, random, now, ancestor, undo):
    """The bytes of the merge, and its report."""
    disk.names[OURS], disk.names[THEIRS] = File(ours), File(theirs)
    _, report = m.merge(OURS, THEIRS, KEY, random, now, ancestor, undo)
    return disk.names[OURS].data, report


def set_capacity(kept, merged):
    """The number of recent changes that a rewrite and a merge list."""
    c.latest.__defaults__ = tuple(kept if one == c.KEPT_PAIRS else one for one in c.latest.__defaults__)
    c.KEPT_PAIRS, m.MERGED_PAIRS = kept, merged


def described(limit):
    return dict(zip(("versions", "days"), limit))


class History(Judge):
    """A vault, its copies and what happens to them, by the seed."""

    def __init__(self, seed, modes, directory=None):
        self.directory = directory
        self.rng, noise = random.Random(seed), random.Random(f"{seed} noise")
        self.seed, self.random = seed, lambda length, purpose: noise.randbytes(length)
        drawn = self.rng.sample(MODES[:-1], self.rng.choice((0, 1, 1, 2, 2, 3))) + ["floor"] * (self.rng.random() < 0.1)
        modes = drawn if modes is None else [mode for mode in modes if mode != "plain"]
        names, lookup_key, kept = "abc"[: self.rng.randint(1, 3)], self.rng.randbytes(32), self.rng.choice((6, 10, 20))
        limit = (0, 0) if "limit-0" in modes else WIDE
        super().__init__(names, lookup_key, ch.SERVICE, limit, modes)
        self.disk = c.os = c.fcntl = Disk(noise)
        set_capacity(*((kept, 2 * kept) if "floor" in modes else CAPACITY))
        self.steps, self.counts, self.number, self.masters = [], Counter(), 0, 0
        description = {"seed": f"causality {seed}", "slots": [key_slot()], "lookup_key": lookup_key.hex()}
        file = d.NewFile(description | {"base": {"sequence": 1}, "history": described(limit)}).file
        self.copies = [Copy(file, slots=self.slot_ids(file))]
        self.old, self.commits = self.copies[:], []

    # Changes

    def clock(self, at):
        self.time += 0 if "still" in self.modes else self.rng.choice((0, 1000, 1000))
        return self.time + self.skews[at] * DAY

    def keep(self, at, copy, step, events=()):
        """The copy at this place is another one."""
        self.steps.append(f"{at}: {step}")
        before, self.copies[at] = self.copies[at], copy
        self.old.append(copy)
        if len(events) == 1:
            self.commits.append((before, copy, events[0]))

    def event(self, copy, name, value, erases, time):
        self.events.append(Event(name, value, self.past(copy.known, name), erases, time))
        return replace(copy, known=copy.known | 1 << len(self.events) - 1)

    def written(self, copy, changes=(), **description):
        """The bytes after a commit, or after a rewrite if there is a description."""
        self.disk.names[OURS] = File(copy.file)
        if description:
            c.rewrite(OURS, KEY, {"changes": list(changes), **description}, self.random)
        else:
            c.commit(OURS, KEY, changes, self.random)
        return self.disk.names[OURS].data

    def change(self, at):
        copy, now, rng = self.copies[at], self.clock(at), self.rng
        name, other = rng.choice(self.names), rng.random()
        shown = self.shown(copy.file, name)
        special = [mode for mode in self.modes if mode in ("slots", "limits", "drops")]
        if special and other < 0.25:
            return getattr(self, rng.choice(special))(at, copy, now)
        erasures = 0.3 if "purges" in self.modes else 0.12
        if other > 1 - erasures and shown.is_known:
            event = self.event(copy, name, None, True, now)
            one, changes = {"service": ch.SERVICE, "account": name}, []
            if shown.present is not None:
                changes = [remove(name, time=now, keeps_nothing=True)]
            after = replace(event, file=self.written(copy, changes, now=now, purge=[one]))
            return self.keep(at, self.judge(after, True), f"erase {name}", [len(self.events) - 1])
        if other > 0.94 - erasures:
            return self.keep(at, self.judge(replace(copy, file=self.written(copy, now=now)), True), "rewrite")
        self.store(at, copy, now, {name} | {*rng.sample(self.names, rng.random() < 0.15)})

    def store(self, at, copy, now, names):
        rng, after, changes, step, first = self.rng, copy, [], [], len(self.events)
        for name in sorted(names):
            shown, is_put = self.shown(copy.file, name), rng.random() < 0.7
            told = rng.choice(({}, {}, {}, {}, {"keeps_nothing": True}, {"keeps_nothing": False}))
            marks = {self.events[one].erases for one in self.put_heads(copy.known, name)}
            is_clear = len(marks) < 2 and name not in copy.picked and "floor" not in self.modes
            erases = told.get("keeps_nothing", True in marks if is_clear else shown.nothing)
            value = None
            if is_put or shown.present is None:
                self.number += 1
                is_twin = "twins" in self.modes and rng.random() < 0.5
                value = b"twin %d" % rng.randint(1, 2) if is_twin else b"%d" % self.number
                changes.append(put(name, value, created=now, modified=now, **told))
            else:
                changes.append(remove(name, time=now, **told))
            after = self.event(after, name, value, erases, now)
            step.append(str(self.events[-1]))
        more = {"now": now} if rng.random() < 0.1 else {}
        after = self.judge(replace(after, file=self.written(copy, changes, **more)), bool(more))
        what = ", ".join(step) + " in a rewrite" * bool(more)
        self.keep(at, after, what, range(first, len(self.events)))

    def limits(self, at, copy, now):
        """Another limit."""
        self.set_limit(at, copy, now, (self.rng.choice((0, 1, 2, 10, 50)), self.rng.choice((0, 0, 1, 30, 1000))))

    def drops(self, at, copy, now):
        """A low limit, so that versions are dropped, and then the former one again."""
        present = self.limit_of(copy)
        self.set_limit(at, copy, now, (self.rng.randint(0, 1), 0))
        self.set_limit(at, self.copies[at], now, present)

    def set_limit(self, at, copy, now, limit):
        if limit != self.limit_of(copy):
            self.limit_events.append((limit, copy.limits))
            file = self.written(copy, now=now, history=described(limit))
            copy = replace(copy, file=file, limits=copy.limits | 1 << len(self.limit_events) - 1)
            copy = replace(copy, limit=len(self.limit_events) - 1)
            self.keep(at, self.judge(copy, True), f"limit {limit}")

    def slots(self, at, copy, now):
        """A key slot is added or removed, or replaced by another one. Sometimes the master key is another one."""
        slots, kind = self.read(copy.file).header.slots, self.rng.choice(("add", "add", "remove", "remove", "replace", "rekey"))
        others = sorted(slot.id for slot in slots if slot.label != "ci")
        removed = {self.rng.choice(others)} if others and kind in ("remove", "replace") else set()
        added = [key_slot("more", self.rng.randbytes(32))] if kind != "remove" else []
        if kind == "rekey" and self.rng.random() < 0.3:
            self.masters += 1
            file = self.written(copy, now=now, slots=[key_slot(), *added])
            after = replace(copy, file=file, slots=self.slot_ids(file), removed=frozenset(), master=self.masters)
        else:
            file = self.written(copy, now=now, add_slots=added, remove_slots=[one.hex() for one in removed])
            after = replace(copy, file=file, slots=copy.slots | self.slot_ids(file), removed=copy.removed | removed)
        self.keep(at, self.judge(after, True), f"{kind} a key slot")

    # Merges

    def merged(self, ours, theirs, now, ancestor=b"", undo=False):
        self.counts["merges"] += 1
        try:
            sides = ours.file, theirs.file
            result, report = merge(self.disk, *sides, self.random, now, ancestor, undo)
        except f.Refused:
            raise
        except Exception as error:
            raise Wrong("a merge fails", repr(error)) from error
        if self.directory and "floor" not in self.modes:
            path = os.path.join(self.directory, f"{self.seed}-{self.counts['merges']}.json")
            with open(path, "w", encoding="ascii") as stream:
                json.dump(case_of(*sides, ancestor, undo and bool(ancestor), now, result, report), stream)
        return result, report

    def join(self, ours, theirs, now, undo):
        """The merge without an ancestor, which knows what both know. None: it is refused, as it must be."""
        try:
            file, report = self.merged(ours, theirs, now, undo=undo)
        except f.Refused as refused:
            self.counts["refused"] += 1
            if ours.master == theirs.master and ("floor" not in self.modes or refused.outcome != f.ROLLED_BACK):
                raise Wrong("a merge is refused", refused.outcome) from None
            return None
        if ours.master != theirs.master:
            raise Wrong("another master key is merged", "")
        sets = "known", "limits", "slots", "removed", "dropped", "picked"
        both = {one: getattr(ours, one) | getattr(theirs, one) for one in sets}
        surely = ours.surely | theirs.surely
        both["alone"] = frozenset(one for one in ours.alone | theirs.alone if not surely >> one[0] & 1)
        copy = self.judge(replace(ours, file=file, **both), True)
        copy = self.judge_limit(copy, ours, theirs)
        self.judge_gone(ours, theirs, copy, report)
        return copy

    def judge_gone(self, ours, theirs, copy, report):
        """The report names what was present and was erased by the other side, and nothing that is there."""
        for name in self.names if hasattr(report, "gone") else ():
            before, after = (self.shown(one.file, name) for one in (ours, copy))
            # Versions that are too old by one clock may count by another.
            there = after.stored if r.read_vault(copy.file, KEY).root.history.days else after.readable
            must = before.present is not None and not there
            is_named, is_wrong = self.lookup[name] in report.gone, not before.stored or there
            if name not in copy.picked and (must and not is_named or is_named and is_wrong):
                self.wrong("the report of what is gone", name, "had", before, "and has", after, report.gone)

    def is_wide(self, *copies):
        """Whether no limit drops a version."""
        return all(self.limit_of(copy) == WIDE for copy in copies)

    def same(self, kind, one, two):
        for name in self.names:
            found = [self.shown(copy.file, name) for copy in (one, two)]
            if found[0].seen != found[1].seen:
                self.wrong(f"{kind}: the heads differ", name, *found)
            elif found[0].present != found[1].present and name not in one.picked | two.picked:
                self.wrong(f"{kind}: the present value differs", name, *found)
            elif found[0].nothing != found[1].nothing and name not in one.picked | two.picked:
                self.wrong(f"{kind}: keeps nothing differs", name, *found)
            elif found[0].readable != found[1].readable and not one.dropped and not two.dropped and name not in one.picked | two.picked:
                self.wrong(f"{kind}: the versions differ", name, *found)
        if self.slot_ids(one.file) != self.slot_ids(two.file):
            self.wrong(f"{kind}: the key slots differ")

    def merge(self, at):
        rng, ours, now, undo = self.rng, self.copies[at], self.clock(at), self.rng.random() < 0.5
        from_ = rng.choice([one for one in range(len(self.copies)) if one != at]) if rng.random() < 0.8 else None
        place = from_ if from_ is not None else rng.randrange(len(self.old))
        theirs = self.copies[place] if from_ is not None else self.old[place]
        self.steps.append(f"{at}: merge {'' if from_ is not None else 'old '}{place}, undo {undo}")
        result = self.join(ours, theirs, now, undo)
        if not result:
            if from_ is not None and rng.random() < 0.5:
                self.keep(at, theirs, f"is {place} from now on")
            return
        if rng.random() < 0.5:
            back = self.join(theirs, ours, now, undo)
            if back:
                self.same("directions", result, back)
                both = rng.random() < 0.5 and self.join(result, back, now, undo)
                if both:
                    self.same("merge of merges", result, both)
        if rng.random() < 0.3:
            again = self.join(result, rng.choice((ours, theirs)), now, undo)
            if again:
                self.same("merged again", result, again)
        self.keep(at, result, f"has the merge with {place}")
        if from_ is not None and rng.random() < 0.3:
            self.keep(from_, result, f"takes over {at}")

    def triple(self):
        """Three copies, in several orders and bracketings."""
        rng, now, undo = self.rng, self.time, self.rng.random() < 0.5
        places = rng.sample(range(len(self.copies)), 3)
        self.counts["triples"] += 1
        self.steps.append(f"merges of the three {places}, undo {undo}")
        join = lambda one, two: one and two and self.join(one, two, now, undo)
        results = []
        for kind in (0, rng.randrange(2), 1, 2):
            one, two, three = (self.copies[at] for at in rng.sample(places, 3))
            both = join(one, two)
            results.append(join(*((both, three), (three, both), (both, join(three, one)))[kind]))
        for one in results[1:]:
            if one and results[0]:
                self.same("three copies", results[0], one)

    # What git does

    def others_stay(self, kind, ours, file, name):
        for other in self.names:
            before, after = self.shown(ours.file, other), self.shown(file, other)
            values = lambda one: (one.present, one.seen, one.readable, one.nothing)
            if other != name and values(before) != values(after) and (before.seen != after.seen or self.is_wide(ours)):
                self.wrong(f"{kind}: another name is changed", other, "had", before, "and has", after)
        if self.limit_of(ours) != self.limit_of(replace(ours, file=file)):
            self.wrong(f"{kind}: the history limit is another")
        if ours.removed & self.slot_ids(file):
            self.wrong(f"{kind}: a removed key slot is there")
        if kind == "revert" and self.slot_ids(ours.file) != self.slot_ids(file):
            self.wrong("revert: the key slots are others")

    def pick(self, at):
        """The change of one commit of another branch."""
        ours = self.copies[at]
        past = functools.reduce(int.__or__, (self.events[one].past for one in bits(ours.known)), ours.known)
        found = [one for one in self.commits if not past >> one[2] & 1 and one[0].master == one[1].master == ours.master]
        if not found:
            return
        before, after, event = self.rng.choice(found)
        name = self.events[event].name
        self.steps.append(f"{at}: pick of {self.events[event]}")
        try:
            file, report = self.merged(ours, after, self.clock(at), before.file)
        except f.Refused as refused:
            return self.wrong("pick: refused", refused.outcome)
        self.counts["picks"] += 1
        self.others_stay("pick", ours, file, name)
        if self.shown(before.file, name).present == self.shown(after.file, name).present is None:
            return self.judge_purge(ours, file, report, name, event)
        result = replace(ours, file=file, known=ours.known | 1 << event)
        if name not in ours.picked | after.picked:
            self.judge_heads(name, self.shown(file, name), self.values(self.put_heads(result.known, name)), result.known)
        is_removal = self.events[event].value is None or self.events[event].erases
        alone = {(event, self.events[event].past & ours.known)} if is_removal else set()
        result = replace(result, picked=ours.picked | {name}, alone=ours.alone | alone)
        self.keep(at, self.judge(result, True), "has it")

    def judge_purge(self, ours, file, report, name, event):
        """A commit was taken that erased a removed secret. What it knew is erased here too, or the secret is named."""
        before, after = self.shown(ours.file, name), self.shown(file, name)
        back = self.outside(ours.known, name, self.events[event].past)[1] & after.stored
        if back and before.present is None:
            self.wrong("pick of a purge: an erased value is there", name, "had", before, "and has", after)
        elif back and self.lookup[name] not in report.left_out | report.gone:
            self.wrong("pick of a purge: an erased value is there, and the secret is not named", name, "has", after)

    def revert(self, at):
        """One commit is taken back: the only head of its name."""
        ours = self.copies[at]
        is_alone = lambda event: self.heads(ours.known, self.events[event].name) == [event]
        found = [one for one in self.commits if is_alone(one[2]) and one[0].master == one[1].master == ours.master]
        found = [one for one in found if self.shown(ours.file, self.events[one[2]].name).seen == self.values([one[2]])]
        if not found:
            return
        before, after, event = self.rng.choice(found)
        name, now = self.events[event].name, self.clock(at)
        self.steps.append(f"{at}: revert of {self.events[event]}")
        try:
            file, _ = self.merged(ours, before, now, after.file, undo=True)
        except f.Refused as refused:
            return self.wrong("revert: refused", refused.outcome)
        self.counts["reverts"] += 1
        self.others_stay("revert", ours, file, name)
        wanted, shown = self.shown(before.file, name), self.shown(file, name)
        if wanted.present != shown.present:
            self.wrong("revert: the value is not that from before", name, "has", shown, "instead of", wanted)
        lost = self.shown(ours.file, name).readable - shown.readable
        if lost and self.is_wide(ours):
            self.wrong("revert: the history loses a value", name, lost)
        if wanted.present is not None and wanted.nothing != shown.nothing:
            self.wrong("revert: keeps nothing is " + ("made up" if shown.nothing else "lost"), name, "has", shown, "was", wanted)
        result = self.event(replace(ours, file=file), name, shown.present, False, now)
        self.keep(at, self.judge(replace(result, picked=ours.picked | {name}), True), "is back")

    def attack(self, at):
        """Somebody without a key chooses theirs and the ancestor. Nothing of it stays."""
        ours, theirs = self.copies[at], self.rng.choice(self.old)
        ancestor = self.rng.choice((b"", b"no vault", ours.file, *(self.rng.choice(self.old).file for _ in range(4))))
        self.steps.append(f"attack on {at} with file {self.old.index(theirs)}, ancestor of {len(ancestor)} bytes")
        self.counts["attacks"] += 1
        if not ancestor:
            return self.join(ours, theirs, self.clock(at), False)
        try:
            file, _ = self.merged(ours, theirs, self.clock(at), ancestor)
        except f.Refused:
            return None
        if self.slot_ids(file) & ours.removed:
            self.wrong("attack: a removed key slot is there")
        result = replace(ours, file=file)
        for other in self.copies:
            self.after_attack(result, ours, theirs, other)
        for name in self.names:
            before, after = self.shown(ours.file, name), self.shown(file, name)
            if after.present is None is not before.present and self.shown(theirs.file, name).present is not None:
                self.wrong("attack: a secret that both files have is lost", name, "had", before, "and has", after)
            # What theirs did not know is no version that its erasures can take.
            unseen = self.values(at for at in self.of(ours.known & ~theirs.known, name))
            seen = self.values(self.of(theirs.known, name))
            lost = before.readable & (unseen - seen) - after.readable
            erasing = self.outside(ours.known | theirs.known, name, self.knew(theirs.known, name, lambda one: one.erases))[1]
            if lost - erasing and self.is_wide(ours, result):
                self.wrong("attack: a version that theirs did not know is lost", name, "had", before, "and has", after)
            dead = self.outside(ours.known | theirs.known, name, self.dead(ours, name, lambda one: one.erases))[1]
            if dead & after.stored:
                self.wrong("attack: an erased value is there", name, "had", before, "and has", after)
            gone = self.outside(ours.known | theirs.known, name, self.dead(ours, name, lambda one: one.value is None))[1]
            if gone & after.seen:
                self.wrong("attack: a removed value is present", name, "had", before, "and has", after)
            for head in self.put_heads(ours.known, name):
                value, is_known = self.events[head].value, theirs.known >> head & 1
                beaten = self.knew(theirs.known, name, lambda one: True) >> head & 1
                if value in before.seen - after.seen and not beaten:
                    loss = "is only a version" if value in after.readable else "is lost"
                    kind = f"attack: a head that theirs {'knew' if is_known else 'did not know'} {loss}"
                    promised = not is_known and value not in after.readable
                    self.wrong(kind, name, "had", before, "and has", after, promised=promised)
        return None

    def after_attack(self, result, ours, theirs, other):
        """The result of the attack is merged with a copy: no head of this is lost that neither of the two files knew."""
        if other.master != ours.master:
            return
        try:
            file, _ = self.merged(result, other, self.time)
        except f.Refused:
            return
        both = ours.known | theirs.known
        for name in self.names:
            after, beaten = self.shown(file, name), self.knew(both, name, lambda one: True)
            heads = [at for at in self.put_heads(other.known, name) if not (both | beaten) >> at & 1]
            lost = self.values(heads) & self.shown(other.file, name).seen - after.readable
            if lost:
                self.wrong("attack: a head of the next copy is lost", name, lost, "of", self.shown(other.file, name), "in", after)

    def run(self):
        rng = self.rng
        for _ in range(rng.randrange(6)):
            self.change(0)
        for _ in range(rng.randint(1, 4)):
            self.copies.append(self.copies[0])
            self.skews.append(rng.randint(-200, 200) if "skewed" in self.modes else 0)
        self.steps.append(f"{len(self.copies)} copies")
        for _ in range(rng.choice((12, 20, 30, 60))):
            at, kind = rng.randrange(len(self.copies)), rng.random()
            if "attack" in self.modes and rng.random() < 0.25:
                self.attack(at)
            if "git" in self.modes and rng.random() < 0.25:
                rng.choice((self.pick, self.pick, self.revert))(at)
            elif kind < 0.5:
                self.change(at)
            elif kind < 0.6 and len(self.copies) > 2:
                self.triple()
            elif kind < 0.96:
                self.merge(at)
            else:
                old = rng.randrange(len(self.old))
                self.keep(at, self.old[old], f"goes on from file {old}")


def main(arguments):
    # Most files are read more than once.
    r.read_vault, r.read_with_master = functools.lru_cache(512)(r.read_vault), functools.lru_cache(512)(r.read_with_master)
    parser = argparse.ArgumentParser(description="Random merges of copies of a vault, judged by who knew what.")
    parser.add_argument("--merges", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--mode", action="append", choices=("plain", *MODES), help="what each history has")
    parser.add_argument("--write", metavar="DIRECTORY", help="write the files and the results there")
    arguments = parser.parse_args(arguments)
    counts, wrongs, apart, shortest, seed, start = Counter(), Counter(), Counter(), {}, arguments.seed, time.process_time()
    while counts["merges"] < arguments.merges:
        history = History(seed, arguments.mode, arguments.write)
        try:
            history.run()
        except Wrong as wrong:
            kind, more = wrong.args
            wrongs[kind] += 1
            if kind not in shortest or len(history.steps) < len(shortest[kind][0].steps):
                shortest[kind] = history, more
        counts, apart, seed = counts + history.counts, apart + history.apart, seed + 1
    for kind, (history, more) in shortest.items():
        head = f"seed {history.seed}, {' '.join(history.modes) or 'plain'}: {kind}: {more}"
        print(head, *history.steps, sep="\n  ", file=sys.stderr)
    for what, found in (("wrong", wrongs), ("apart", apart)):
        for kind, number in found.most_common():
            print(f"{what}: {number} times: {kind}")
    made = ", ".join(f"{counts[kind]} {kind}" for kind in ("merges", "triples", "picks", "reverts", "attacks", "refused"))
    rate = counts["merges"] / (time.process_time() - start)
    histories = f"{seed - arguments.seed} histories from seed {arguments.seed}"
    print(f"{histories}, {made}, {rate:.0f} merges/s: {sum(wrongs.values())} wrong")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
