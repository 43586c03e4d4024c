#!/usr/bin/env python3
"""Random histories of a vault on a simulated disk that loses power, compared with a model.

usage: crash_histories.py [--histories N] [--seed S] [--omit BARRIER]

The writer is that of vault_changes.py and known_vaults.py: commits, rewrites, purges, new master keys and recipients,
merges of copies that went their own ways, and records of known vaults. After each loss of power the vault must hold the
acknowledged state or the one that was being written, its record must accept it, and the record must refuse each older
file. With --omit one barrier is left out, and a history must show it: first, second, file (the fsync of a new file) or
directory. The first one that does ends the run.

Exit status: 0 every history is as the model says (with --omit: one is not), 1 otherwise, 2 wrong usage.
"""

import argparse
import copy
import functools
import os
import random
import sys
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace

import known_vaults as k
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_history as h
import vault_merging as m
import vault_reader as r
import vault_records as p
from vector_bases import BASES, CI_KEY, IDENTITY, NOW, key_slot, put, recipient_slot, remove
from vector_expect import Event, expected_versions

KEY, RECIPIENT = r.Key(CI_KEY), r.Identity(IDENTITY)
VAULT, COPY, OTHER, FORMER, RECORD = "/v/vault", "/v/copy", "/v/other", "/v/former", "/r/record"
KEY_RECORD = "/r/key"
PLACE = VAULT.encode()
HISTORY = {"versions": 2, "days": 0}
ACCOUNTS = ("a", "b", "c", "d")
SECTOR = 512


class PowerLoss(BaseException):
    """No handler of the writer may take it for a failure that it can clean up after."""


# The disk


class File:
    """The bytes as a process sees them, and the images since the last barrier. A loss of power leaves any of each page."""

    def __init__(self, data=b""):
        self.images = [data]

    @property
    def data(self):
        return self.images[-1]

    def change(self, data):
        self.images.append(data)

    def sync(self):
        del self.images[:-1]

    def left(self, rng):
        """What is on the disk after a loss of power: of each page one image, or sectors of several."""
        images = list(dict.fromkeys(self.images))
        if len(images) == 1 or rng.random() < 0.1:
            return images[-1]
        size, found = len(rng.choice(images)), b""
        for at in range(0, size, f.PAGE):
            pages = list(dict.fromkeys(image[at : at + f.PAGE].ljust(f.PAGE, b"\0") for image in images))
            page = rng.choice(pages)
            if len(pages) > 1 and rng.random() < 0.3:
                page = b"".join(rng.choice(pages)[to : to + SECTOR] for to in range(0, f.PAGE, SECTOR))
            found += page
        return found[:size]


class Disk:
    """Files, and the part of the module `os` that the writer uses. Changes of names survive in their order."""

    O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_CLOEXEC, O_NOFOLLOW = (
        os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_EXCL, os.O_CLOEXEC, os.O_NOFOLLOW,
    )
    O_DIRECTORY, O_NONBLOCK = os.O_DIRECTORY, os.O_NONBLOCK
    LOCK_EX, LOCK_NB = 2, 4
    environb, fsencode, geteuid = {}, staticmethod(os.fsencode), staticmethod(os.geteuid)

    def __init__(self, rng, omit=None):
        self.rng, self.omit = rng, omit
        self.names, self.open_files = {}, {}
        self.kept_names = [{}]  # the names on the disk, and those after each change since the last barrier
        self.calls, self.loss, self.next, self.barriers = 0, None, 3, 0
        self.remaining = {}  # what a loss of power leaves of a file, which may have two names
        exists = lambda path: path in self.names or path in ("/v", "/r")
        self.path = SimpleNamespace(
            dirname=os.path.dirname, abspath=os.path.abspath, basename=os.path.basename, join=os.path.join,
            lexists=exists, isdir=exists,
        )  # fmt: skip

    def step(self, change=lambda: None):
        """Counts a call. At the chosen one power is lost, before or after the change."""
        self.calls += 1
        if self.loss is not None and self.calls >= self.loss:
            if self.calls == self.loss and self.rng.random() < 0.5:
                change()
            raise PowerLoss
        change()

    def lose_power(self):
        """The disk is what is left of it. Its files are opened anew."""
        files, self.remaining = {}, {}
        for name, file in self.rng.choice(self.kept_names).items():
            files[name] = File(files[name].data if name in files else self.remains(file))
        self.names = files
        self.restart()
        self.kept_names = [dict(files)]

    def remains(self, file):
        return self.remaining.setdefault(id(file), file.left(self.rng))

    def restart(self):
        """A process begins: the one before it was killed, or the power is back."""
        self.open_files, self.loss = {}, None

    def rename_to(self, names):
        self.names = names
        self.kept_names.append(dict(names))

    # The calls

    def open(self, path, flags, mode=0o600):
        if flags & os.O_DIRECTORY:
            file = path
        elif flags & os.O_CREAT:
            file = File()
            self.step(lambda: self.rename_to(self.names | {path: file}))
        elif path in self.names:
            file = self.names[path]
        else:
            raise FileNotFoundError(path)
        self.next += 1
        self.open_files[self.next] = file
        return self.next

    def close(self, descriptor):
        self.open_files.pop(descriptor, None)

    dup = staticmethod(lambda descriptor: descriptor)

    def fdopen(self, descriptor, mode):
        return Stream(self.open_files[descriptor].data)

    def pwrite(self, descriptor, data, offset):
        file = self.open_files[descriptor]
        old = file.data.ljust(offset, b"\0")
        self.step(lambda: file.change(old[:offset] + data + old[offset + len(data) :]))
        return len(data)

    def ftruncate(self, descriptor, size):
        file = self.open_files[descriptor]
        if size != len(file.data):
            self.step(lambda: file.change(file.data[:size].ljust(size, b"\0")))

    def fdatasync(self, descriptor):
        self.barriers += 1
        omitted = {"first": 1, "second": 2}.get(self.omit) == self.barriers
        self.step(self.open_files[descriptor].sync if not omitted else lambda: None)

    def fsync(self, descriptor):
        file = self.open_files[descriptor]
        if isinstance(file, File):
            self.step(file.sync if self.omit != "file" else lambda: None)
        elif self.omit != "directory":
            self.step(lambda: self.kept_names.__delitem__(slice(None, -1)))
        else:
            self.step()

    def link(self, old, new):
        if new in self.names:
            raise FileExistsError(new)
        self.step(lambda: self.rename_to(self.names | {new: self.names[old]}))

    def rename(self, old, new):
        names = {name: file for name, file in self.names.items() if name != old}
        self.step(lambda: self.rename_to(names | {new: self.names[old]}))

    def unlink(self, path):
        self.step(lambda: self.rename_to({name: file for name, file in self.names.items() if name != path}))

    def urandom(self, count):
        return self.rng.randbytes(count)

    def stat(self, path):
        if path in ("/v", "/r"):
            return SimpleNamespace(st_uid=os.geteuid(), st_mode=0o40700)
        return self.status(self.names[path])

    def fstat(self, descriptor):
        return self.status(self.open_files[descriptor])

    def status(self, file):
        links = sum(one is file for one in self.names.values())
        return SimpleNamespace(st_dev=0, st_ino=id(file), st_uid=os.geteuid(), st_mode=0o100600, st_nlink=links)

    def fchmod(self, descriptor, mode):
        pass

    def makedirs(self, path, mode, exist_ok):
        pass

    def flock(self, descriptor, operation):
        pass


class Stream:
    def __init__(self, data):
        self.data = data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self):
        return self.data


# The model


@dataclass(frozen=True)
class State:
    """What a vault holds: the events of each account, ascending by sequence."""

    sequence: int
    events: tuple = ()  # of (account, events)
    former_keys: int = 0
    has_recipient: bool = False
    limit: tuple = tuple(HISTORY.items())

    @classmethod
    def of(cls, vault):
        """What a file holds that was not written at the moment of a loss of power, as after a merge."""
        events = {}
        for entries in vault.entries.values():
            for one in (entry.record for entry in entries):
                more = {"account": one.account, "keeps_nothing": bool(one.field(p.KEEPS_NOTHING))}
                if one.is_put:
                    more |= {"conflict": one.field(p.CONFLICT), "twin": one.field(p.TWIN)}
                    value = next(entry.value for entry in entries if entry.record is one).hex()
                    change = {"put": more | {"service": SERVICE, "value": value, "modified": one.time}}
                else:
                    change = {"remove": more | {"time": one.time}}
                events.setdefault(one.account, []).append(Event(one.sequence, change))
        events = tuple((account, tuple(found)) for account, found in sorted(events.items()))
        recipients = any(slot.type == f.X25519_SLOT for slot in vault.header.slots)
        return cls(vault.state.sequence, events, len(vault.root.lineage), recipients)

    def versions(self, events):
        return expected_versions(events, dict(self.limit), NOW)

    def changed(self, changes):
        events, sequence = dict(self.events), self.sequence
        for change in changes:
            sequence += 1
            one = Event(sequence, change)
            events[one.one["account"]] = (*events.get(one.one["account"], ()), one)
        return replace(self, sequence=sequence, events=tuple(sorted(events.items())))

    def rewritten(self, purged=None):
        """Without what no longer counts, and without the versions of the account `purged`."""
        kept = {}
        for account, events in self.events:
            counted = {one["sequence"] for one in self.versions(events)} if account != purged else ()
            for before, event in zip((None, *events), events):
                is_present = event is events[-1] and event.put
                if is_present or event.sequence in counted or before and before.sequence in counted and not event.put:
                    kept[account] = (*kept.get(account, ()), event)
        return replace(self, sequence=self.sequence + 1, events=tuple(sorted(kept.items())))

    def shown(self):
        found = [self.sequence, self.former_keys, self.has_recipient]
        for account, events in self.events:
            versions, last = self.versions(events), events[-1]
            if last.put:
                found.append((account, last.sequence, last.put["value"]))
            elif versions:
                found.append((account, last.sequence, None))
            found += [(account, one["sequence"], one["value"]) for one in versions]
            found += [(account, one.sequence, "in conflict") for one in heads_of(events)[:-1]]
        return found


def heads_of(events):
    """The newest event, and the values that lost to it in a merge, when nothing was stored since."""
    last = events[-1:]
    beside = lambda one: last[0].sequence in (one.put.get("conflict"), one.put.get("twin"))
    lost = [one for one in events[:-1] if last[0].put and one.put and beside(one)]
    return [*lost, *last]


SERVICE = "com.example.app"
LOOKUP = bytes(32)


def shown(vault):
    """The same of a vault that was read."""
    recipients = sum(slot.type == f.X25519_SLOT for slot in vault.header.slots)
    found = {}
    for entry in [*vault.secrets(), *vault.removed(NOW)]:
        value = entry.value.hex() if entry.record.is_put else None
        found.setdefault(entry.record.account, []).append((entry.record.account, entry.record.sequence, value))
    for version in vault.versions(NOW):
        record = version.entry.record
        found.setdefault(record.account, []).append((record.account, record.sequence, version.entry.value.hex()))
    for entries in vault.entries.values():
        for one in entries[:-1]:
            if h.stands_beside(one, entries[-1]):
                found[one.record.account].append((one.record.account, one.record.sequence, "in conflict"))
    head = [vault.state.sequence, len(vault.root.lineage), recipients > 0]
    return head + [one for account in sorted(found) for one in found[account]]


# The histories


class Wrong(Exception):
    pass


class History:
    def __init__(self, seed, omit):
        self.rng, self.seed = random.Random(seed), seed
        self.disk = Disk(self.rng, omit)
        self.time, self.losses, self.what = NOW - 10**9, 0, "creation"
        self.old_files, self.recorded = [], []  # files of acknowledged states; states that a record may name
        self.alternatives = []  # what a loss of power may bring back, because a process was killed
        c.os = k.os = c.fcntl = self.disk
        self.create()

    def random(self, length, purpose):
        return self.rng.randbytes(length)

    def create(self):
        description = copy.deepcopy(BASES["created"][0])
        description |= {"seed": f"history {self.seed}", "history": HISTORY, "lookup_key": LOOKUP.hex()}
        file = d.NewFile(description).file
        c.write_new_file(VAULT, file)
        if self.disk.omit == "directory":
            self.disk.kept_names = [dict(self.disk.names)]
        if self.disk.omit == "file":
            self.disk.names[VAULT].sync()
        self.state = State(1)

    def read(self, path=VAULT):
        if path not in self.disk.names:
            raise Wrong("there is no vault")
        return r.read_vault(self.disk.names[path].data, KEY)

    def run(self, steps):
        for _ in range(steps):
            action = self.rng.choice(
                (self.commit, self.commit, self.commit, self.rewrite, self.purge, self.rekey, self.merge, self.remember)
            )
            self.what = action.__name__
            before = self.disk.names[VAULT].data
            loses = self.rng.random() < 0.4
            after = []
            try:
                action(after.append, loses)
            except PowerLoss:
                self.after_loss([self.state, *after, *self.alternatives])
                continue
            finally:
                self.disk.loss = None
            self.state = after[-1] if after else self.state
            self.compare([self.state])
            self.alternatives = []
            if self.what != "remember":
                self.old_files.append(before)
            if loses:
                self.what += ", acknowledged"
                self.after_loss([self.state])
        self.compare([self.state])

    def arm(self, loses):
        """Power is lost at one of the next calls: of six in a commit, of five in a new file, or afterwards."""
        if loses:
            self.disk.loss = self.disk.calls + self.rng.randint(1, 7)
        self.disk.barriers = 0

    def changes(self, state):
        """One to three changes of this state."""
        changes = []
        stored = {name for name, found in state.events if found[-1].put}
        for _ in range(self.rng.randint(1, 3)):
            account = self.rng.choice(ACCOUNTS)
            self.time += 1000
            more = {"keeps_nothing": self.rng.random() < 0.1}
            if account in stored and self.rng.random() < 0.3:
                changes.append(remove(account, time=self.time, **more))
                stored.discard(account)
            else:
                value = self.rng.randbytes(self.rng.choice((1, 40, 120)))
                if self.rng.random() < 0.1:
                    more["expires"] = NOW + 1000
                changes.append(put(account, value, created=self.time, modified=self.time, **more))
                stored.add(account)
        return changes

    # What is done

    def commit(self, becomes, loses):
        changes = self.changes(self.state)
        becomes(self.state.changed(changes))
        self.arm(loses)
        c.commit(VAULT, KEY, changes, self.random)

    def rewrite(self, becomes, loses, **more):
        changes = self.changes(self.state) if self.rng.random() < 0.5 else []
        becomes(self.state.changed(changes).rewritten())
        self.arm(loses)
        c.rewrite(VAULT, KEY, {"now": NOW, "changes": changes}, self.random)

    def purge(self, becomes, loses):
        account = self.rng.choice(ACCOUNTS)
        becomes(self.state.rewritten(purged=account))
        self.arm(loses)
        names = [{"service": SERVICE, "account": account}]
        c.rewrite(VAULT, KEY, {"now": NOW, "purge": names}, self.random)

    def rekey(self, becomes, loses):
        has_recipient = self.rng.random() < 0.5
        state = replace(self.state.rewritten(), former_keys=self.state.former_keys + 1)
        becomes(replace(state, has_recipient=has_recipient))
        slots = [key_slot(), recipient_slot()] if has_recipient else [key_slot()]
        self.arm(loses)
        credential = RECIPIENT if self.state.has_recipient and self.rng.random() < 0.5 else KEY
        c.rewrite(VAULT, credential, {"now": NOW, "slots": slots}, self.random)

    def merge(self, becomes, loses):
        """The vault and two copies go their own ways and merge each other. At last the vault merges a copy."""
        for path in (COPY, OTHER):
            self.disk.names[path] = File(self.disk.names[VAULT].data)
        for _ in range(self.rng.choice((0, 0, 0, 1, 2, 4))):
            here, there = self.rng.sample((VAULT, COPY, OTHER), 2)
            self.diverge(here, there)
            m.merge(here, there, KEY, self.random, self.time)
        self.diverge(VAULT, COPY)
        sides = [self.disk.names[path].data for path in (VAULT, COPY)]
        ours, theirs = (r.read_vault(side, KEY) for side in sides)
        self.state = State.of(ours)
        whole = m.merged_file(ours, theirs, None, c.judged({"now": self.time}, ours, theirs), self.random)[0]
        becomes(State.of(r.read_vault(whole, KEY)))
        self.arm(loses)
        m.merge(VAULT, COPY, KEY, self.random, self.time)
        result, record = self.read(), self.record()
        if record:
            k.judge(record, result)
        # Whoever saw one of the sides accepts the merge. Whoever saw the merge refuses both.
        for side in sides:
            k.judge(self.seen(r.read_vault(side, KEY)), result)
            self.must_refuse(self.seen(result), side)

    def diverge(self, *paths):
        """Two files go their own ways."""
        for path in paths:
            if self.rng.random() < 0.8:
                self.elsewhere(path)
        self.time += 1000

    def seen(self, vault):
        """A new record of the vault."""
        return k.Record.parse(k.made(vault, PLACE, k.STRICT), PLACE)

    def elsewhere(self, path):
        """Commits that are on the disk, and sometimes a rewrite or a purge."""
        for _ in range(self.rng.randint(1, 3)):
            c.commit(path, KEY, self.changes(State.of(self.read(path))), self.random)
            if self.rng.random() < 0.3:
                account = self.rng.choice((None, *ACCOUNTS))
                purge = [{"service": SERVICE, "account": account}] if account else []
                c.rewrite(path, KEY, {"now": NOW, "purge": purge}, self.random)

    def settle(self):
        """What a reader does before it records: barriers of its own."""
        self.disk.names[VAULT].sync()
        self.disk.kept_names = [dict(self.disk.names)]
        self.alternatives = []

    def remember(self, becomes, loses):
        self.settle()
        vault = self.read()
        self.recorded.append((vault.header.commitment, vault.state.sequence, vault.state.tail_tag))
        self.arm(loses)
        k.remember(RECORD, PLACE, vault)
        k.remember_of_vault(KEY_RECORD, PLACE, vault)
        record = self.record()
        if (record.seen.sequence, record.seen.tail_tag) != self.recorded[-1][1:]:
            raise Wrong("the record is not of what was recorded")
        self.refuses_older(record)

    # What must be so

    def record(self):
        return k.read_record(RECORD, PLACE)[1]

    def key_record(self, vault):
        return k.read_record(KEY_RECORD, k.vault_subject(vault.header.vault_id))[1]

    def refuses_older(self, record):
        for file in self.rng.sample(self.old_files, min(3, len(self.old_files))):
            if file != self.disk.names[VAULT].data:
                self.must_refuse(record, file)

    def must_refuse(self, record, file):
        old, seen = r.read_vault(file, KEY), record.seen
        self.must_refuse_key(old)
        if (seen.sequence, seen.tail_tag) in c.changes_of(old):
            return
        try:
            k.judge(record, old)
        except f.Refused as refused:
            if refused.outcome in (f.ROLLED_BACK, f.ANOTHER_KEY):
                return
        raise Wrong(f"a file of {old.state.sequence} is accepted after {seen.sequence} was seen")

    def must_refuse_key(self, old):
        """At a place that was never seen, a former master key is refused, and an older state of the present one too."""
        seen, keys = self.key_record(old), [commitment for commitment, *_ in self.recorded]
        if not seen or old.header.commitment not in keys or seen.seen.commitment not in keys:
            return
        is_former = keys.index(old.header.commitment) < keys.index(seen.seen.commitment)
        is_shown = (seen.seen.sequence, seen.seen.tail_tag) in c.changes_of(old)
        wanted = f.ANOTHER_KEY if is_former else k.FIRST_USE if is_shown else f.ROLLED_BACK
        try:
            found = k.judge(None, old, seen)
        except f.Refused as refused:
            found = refused.outcome
        if found != wanted:
            raise Wrong(f"at another place, a file of {old.state.sequence} is {found} and not {wanted}")

    def compare(self, possible, path=VAULT):
        """The state that the vault has, which must be one of these."""
        vault = self.read(path)
        found = shown(vault)
        for state in possible:
            if state.shown() == found:
                return state
        raise Wrong(f"{found} is found instead of {' or '.join(str(one.shown()) for one in possible)}")

    def after_loss(self, possible):
        """Power is back, or the process was killed and its successor reads what it left."""
        self.losses += 1
        had_record = RECORD in self.disk.kept_names[0]
        had_key_record = KEY_RECORD in self.disk.kept_names[0]
        if self.rng.random() < 0.8:
            self.disk.lose_power()
            self.alternatives = []
        else:
            self.disk.restart()
            self.alternatives = possible
        self.state = self.compare(possible)
        vault, record = self.read(), self.record()
        if had_record and not record:
            raise Wrong("the record is lost")
        of_vault = self.key_record(vault)
        if had_key_record and not of_vault:
            raise Wrong("the record of the vault is lost")
        k.judge(record, vault, of_vault)
        if record:
            seen = record.seen
            if (seen.commitment, seen.sequence, seen.tail_tag) not in self.recorded:
                raise Wrong("the record is of a state that was never recorded")
            self.refuses_older(record)


def outcome_of(seed, steps, omit):
    """The number of losses of power in a history, and what is wrong in it."""
    history = History(seed, omit)
    try:
        history.run(steps)
    except (Wrong, f.Refused) as wrong:
        return history.losses, f"seed {seed}, {history.what}: {wrong}"
    return history.losses, None


def main(arguments):
    # Most files are read more than once.
    r.read_with_master = functools.lru_cache(128)(r.read_with_master)
    parser = argparse.ArgumentParser(description="Random histories of a vault on a disk that loses power.")
    parser.add_argument("--histories", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="changes in a history")
    parser.add_argument("--omit", choices=("first", "second", "file", "directory"), help="leave out this barrier")
    arguments = parser.parse_args(arguments)
    losses, wrong, number, start = 0, 0, 0, time.process_time()
    for number in range(1, arguments.histories + 1):
        count, failure = outcome_of(arguments.seed + number - 1, arguments.steps, arguments.omit)
        losses += count
        if failure:
            wrong += 1
            print(failure, file=sys.stdout if arguments.omit else sys.stderr)
            if arguments.omit:
                break
    rate = number / (time.process_time() - start)
    made = f"{number} histories from seed {arguments.seed}, {losses} losses of power, {rate:.0f} histories/s"
    print(f"{made}: {wrong} wrong")
    if arguments.omit and not wrong:
        print(f"nothing is wrong without the barrier {arguments.omit}")
    return 0 if bool(wrong) == bool(arguments.omit) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
