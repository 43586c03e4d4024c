#!/usr/bin/env python3
"""Random merges of two copies of a vault, with and without an ancestor, compared with a model.

usage: merge_histories.py [--histories N] [--seed S] [--write DIRECTORY]

Secrets are stored, removed and erased on either side, with and without the mark that keeps nothing; key slots are added,
removed and replaced, history limits and master keys changed. The ancestor is none, the copy from which both come, a copy on the way of one
side, as when one commit is taken, a copy of ours, as when a commit is reverted, or a file that is no ancestor. Each merge
is also made in the other direction. With --write, the files and what is expected are written for another implementation.

Exit status: 0 every merge is as the model says, 1 otherwise, 2 wrong usage.
"""

import argparse
import json
import os
import random
import sys
from dataclasses import replace

import crash_histories as ch
import known_vaults as k
import vault_changes as c
import vault_format as f
import vault_merging as m
import vault_reader as r
import vault_records as p
from crash_histories import File, History, KEY, NOW, Wrong
from vector_bases import CI_KEY, key_slot, put

OURS, THEIRS, BACK, OTHERS = "/v/vault", "/v/theirs", "/v/back", "/v/others"


class Merges(History):
    """Two sides that go their own ways, and the files on the way."""

    def __init__(self, seed):
        super().__init__(seed, None)
        self.number = 0
        slots = frozenset(slot.label for slot in self.read().header.slots)
        self.state = replace(self.state, slots=slots)

    def step(self, path, state):
        """A few changes of one side. Returns its state and its file after each."""
        found = []
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.choice(("secrets", "secrets", "secrets", "erase", "slots", "limit"))
            state = getattr(self, kind)(path, state)
            found.append((state, self.disk.names[path].data))
        return found

    def secrets(self, path, state):
        changes = self.changes(state) if self.rng.random() < 0.95 else self.marked(state)
        c.commit(path, KEY, changes, self.random)
        return state.changed(changes)

    def marked(self, state):
        """Two values, of which one says by hand that it lost to the other, although it is the later one."""
        self.time += 1000
        changes = [{"modified": self.time, "conflict": state.sequence + 2}, {"modified": self.time - 500}]
        account = self.rng.choice(ch.ACCOUNTS)
        return [put(account, self.rng.randbytes(40), created=self.time, keeps_nothing=False, **one) for one in changes]

    def rewritten(self, path, state, description, purged=None):
        c.rewrite(path, KEY, {"now": NOW, **description}, self.random)
        return state.rewritten(purged)

    def erase(self, path, state):
        account = self.rng.choice(ch.ACCOUNTS)
        return self.rewritten(path, state, {"purge": [{"service": ch.SERVICE, "account": account}]}, account)

    def slots(self, path, state):
        """A slot is added or removed, or replaced by another one, as by a new passphrase."""
        kind, description, added, removed = self.rng.choice(("add", "remove", "replace")), {}, set(), set()
        if kind != "add" and len(state.slots) > 1:
            label = self.rng.choice(sorted(state.slots)[1:])
            found = next(slot.id.hex() for slot in self.read(path).header.slots if slot.label == label)
            description["remove_slots"], removed = [found], {label}
        if kind != "remove" or not removed:
            self.number += 1
            label = f"member {self.number}"
            description["add_slots"], added = [key_slot(label, self.rng.randbytes(32))], {label}
        after = self.rewritten(path, state, description)
        return replace(after, slots=after.slots - removed | added, former_slots=after.former_slots | removed)

    def limit(self, path, state):
        limit = {"versions": self.rng.randint(0, 4), "days": self.rng.choice((0, 1000, 2000))}
        both = replace(state, limit=tuple({**limit, "versions": min(limit["versions"], dict(state.limit)["versions"])}.items()))
        c.rewrite(path, KEY, {"now": NOW, "history": limit}, self.random)
        return replace(both.rewritten(), limit=tuple(limit.items()))

    def run(self, rounds):
        """Yields the files, the ancestor, whether it takes back, and the merge that is expected."""
        for _ in range(rounds):
            here, there = ([(self.state, self.disk.names[OURS].data)] for _ in range(2))
            self.disk.names[THEIRS] = File(here[0][1])
            if self.rng.random() < 0.2:  # theirs stays a copy that is older, or that another merge wrote
                self.disk.names[OTHERS] = File(here[0][1])
            here += self.step(OURS, self.state) if self.rng.random() < 0.9 else []
            there += self.step(THEIRS, self.state) if self.rng.random() < 0.9 else []
            yield from self.merges(here, there)
            if self.rng.random() < 0.1:
                self.refuses_another_key()

    def refuses_another_key(self):
        """A side that has changed its master key is refused, in both directions."""
        rekeyed = c.rewritten(self.read(OURS), {"now": NOW, "slots": [key_slot()]}, self.random)[0]
        for sides in ((self.disk.names[OURS].data, rekeyed), (rekeyed, self.disk.names[OURS].data)):
            try:
                self.made(*sides, b"", True)
            except f.Refused as refused:
                if refused.outcome != f.ANOTHER_KEY:
                    raise Wrong(f"another master key is {refused.outcome}") from None
            else:
                raise Wrong("a side with another master key is merged")

    def merges(self, here, there):
        (ours, ours_file), (theirs, theirs_file) = here[-1], there[-1]
        kind = self.rng.choice(("none", "none", "parting", "parting", "theirs", "ours", "foreign"))
        ancestors = {"none": [(None, b"")], "parting": here[:1], "theirs": there[:-1], "ours": here, "foreign": [(None, b"no vault")]}
        ancestor, file = self.rng.choice(ancestors[kind] or here[:1])
        takes_back, self.time = self.rng.random() < 0.5, self.time + 1000
        # A clock may be behind. No other change has that time.
        self.clock = self.time - (self.rng.choice((3250, 40_250)) if self.rng.random() < 0.2 else 0)
        expected = self.checked_merge(ours, theirs, self.clock, ancestor, takes_back)
        result, report = self.made(ours_file, theirs_file, file, takes_back)
        self.state = self.compare([expected], BACK)
        self.check_others(result, expected)
        for side, is_whole in ((ours_file, True), (theirs_file, not report.left_out)):
            side = r.read_vault(side, KEY)
            record = self.seen(side)
            if is_whole:
                k.judge(record, result)
        yield ours_file, theirs_file, file, takes_back, self.clock, result, report
        if takes_back and kind in ("none", "parting"):  # then both directions have the same secrets
            back, _ = self.made(theirs_file, ours_file, file, takes_back)
            one, two = self.present(result), self.present(back)
            if one != two:
                raise Wrong(f"the directions differ: {one} and {two}")
            self.check_others(back, theirs.merged(ours, self.clock, ancestor, takes_back))
            if not ancestor and {slot.id for slot in back.header.slots} != {slot.id for slot in result.header.slots}:
                raise Wrong("the directions differ in their key slots")
        self.disk.names[OURS] = File(self.disk.names[THEIRS if self.rng.random() < 0.1 else BACK].data)
        if self.disk.names[OURS].data == theirs_file:
            self.state = theirs
        elif takes_back:
            self.made(ours_file, theirs_file, file, takes_back)
            self.disk.names[OURS] = File(self.disk.names[BACK].data)

    def made(self, ours, theirs, ancestor, takes_back):
        self.disk.names[BACK], self.disk.names[OTHERS] = File(ours), File(theirs)
        _, report = m.merge(BACK, OTHERS, KEY, self.random, self.clock, ancestor, takes_back)
        return self.read(BACK), report

    def present(self, vault):
        return {entry.record.account: entry.value for entry in vault.secrets()}

    def check_others(self, vault, expected):
        slots = {slot.label for slot in vault.header.slots}
        if slots != expected.slots:
            raise Wrong(f"the key slots are {sorted(slots)} instead of {sorted(expected.slots)}")
        former = {one.label for one in vault.root.former}
        if former != expected.former_slots:
            raise Wrong(f"the former key slots are {sorted(former)} instead of {sorted(expected.former_slots)}")
        if vars(m.limit_of(vault)) != dict(expected.limit):
            raise Wrong(f"the history limit is {m.limit_of(vault)} instead of {expected.limit}")


def described(case):
    """What another implementation must find."""
    ours, theirs, ancestor, takes_back, time, result, report = case
    entries = [
        [one.record.account, one.record.kind, one.record.sequence, one.record.time, one.value.hex(),
         one.record.field(p.CONFLICT, 0), one.record.field(p.KEEPS_NOTHING) is not None,
         (one.record.field(p.ORIGIN) or (0, b""))[0], (one.record.field(p.ORIGIN) or (0, b""))[1].hex()]
        for key in sorted(result.entries) for one in result.entries[key]
    ]  # fmt: skip
    files = {"ours": ours.hex(), "theirs": theirs.hex(), "ancestor": ancestor.hex()}
    former = [[one.slot_id.hex(), one.is_trace, one.sequence, one.label] for one in result.root.former]
    expected = {
        "entries": entries, "sequence": result.state.sequence, "floor": result.root.floor, "formerSlots": former,
        "slots": [slot.raw.hex() for slot in result.header.slots], "limit": [*vars(m.limit_of(result)).values()],
        "recent": [[number, tag.hex()] for number, tag in result.recent], "leftOut": report.left_out,
        "takenBack": len(report.taken_back),
    }  # fmt: skip
    return files | {"key": CI_KEY.hex(), "takesBack": takes_back, "time": time, "expected": expected}


def main(arguments):
    parser = argparse.ArgumentParser(description="Random merges of two copies of a vault.")
    parser.add_argument("--histories", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--write", metavar="DIRECTORY", help="write the files and what is expected there")
    arguments = parser.parse_args(arguments)
    wrong = count = with_ancestor = taken_back = 0
    for seed in range(arguments.seed, arguments.seed + arguments.histories):
        try:
            for case in Merges(seed).run(4):
                count += 1
                with_ancestor += len(case[2]) > 100
                taken_back += bool(case[-1].taken_back)
                if arguments.write:
                    with open(os.path.join(arguments.write, f"{count:06}.json"), "w", encoding="ascii") as stream:
                        json.dump(described(case), stream)
        except (Wrong, f.Refused) as error:
            wrong += 1
            print(f"seed {seed}: {error}", file=sys.stderr)
    print(f"{count} merges from seed {arguments.seed}, {with_ancestor} with an ancestor, {taken_back} take something back: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
