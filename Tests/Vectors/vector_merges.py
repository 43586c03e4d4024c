"""Merges as vectors: the files, and what the merge of them must be. merge_causality.py writes its merges in this form too."""

import json
import os
import tempfile

import coffer_vault
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_merging as m
import vault_reader as r
import vault_records as p
from vault_writer import seeded_random
from vector_bases import CI_KEY, NOW
from vector_suite import difference, edited, text_of

KEY = r.Key(CI_KEY)
OF_MERGES = (p.CONFLICT, p.TWIN, p.KEEPS_NOTHING, p.KEPT_NOTHING, p.ORIGIN)
UNCHANGED, THEIRS, MERGED = "unchanged", "theirs", "merged"
TIME = NOW + 3_600_000  # of each rewrite and merge
NAME, BASE = "merges.json", "merges.vault"


# What a merge is


def pair(birth):
    return [birth[0], birth[1].hex()]


def hexadecimal(fields):
    return [[kind, data.hex()] for kind, data in fields]


def record_of(entry):
    """A record of the merge, without what is empty."""
    record, found = entry.record, {}
    origin = record.field(p.ORIGIN)
    found["conflict"], found["twin"] = record.field(p.CONFLICT), record.field(p.TWIN)
    found["keeps_nothing"], found["kept_nothing"] = record.field(p.KEEPS_NOTHING), record.field(p.KEPT_NOTHING)
    found["origin"] = origin and pair(origin)
    found["fields"] = hexadecimal((kind, data) for kind, data in record.fields if kind not in OF_MERGES)
    named = {"account": record.account, "sequence": record.sequence, "time": record.time}
    if record.is_put:
        named |= {"created": record.created, "value": entry.value.hex()}
    return named | {name: one for name, one in found.items() if one}


def expectation(ours, theirs, is_joined, result, report):
    """What the merge `result` of two files is. `is_joined`: there is no ancestor."""
    ours, theirs, vault = (r.read_vault(file, KEY) for file in (ours, theirs, result))
    shown = [c.changes_of(one) for one in (ours, theirs)]
    state = lambda one: (one.state.sequence, one.state.tail_tag)
    names = {key: found[0].record.account for one in (ours, theirs) for key, found in one.entries.items()}
    told = {"erased": report.gone, "left_out": report.left_out, "taken_back": report.refused}
    told = {name: sorted(names[key] for key in keys) for name, keys in told.items() if keys}
    if is_joined and state(theirs) in shown[0]:
        return {"outcome": UNCHANGED}
    limit, known = vault.root.history, p.KNOWN["root"]
    history = {"versions": limit.versions, "days": limit.days, "sequence": limit.sequence}
    lists = {
        "slots": [slot.raw.hex() for slot in vault.header.slots],
        "former_slots": [coffer_vault.described_former(one) for one in vault.root.former],
        "taken": [pair(one) for one in vault.root.taken],
        "root_fields": hexadecimal((kind, data) for kind, data in vault.root.fields if kind not in known),
        "compatible": vault.header.compatible,
    }
    return {
        "outcome": THEIRS if is_joined and state(ours) in shown[1] else MERGED,
        "sequence": vault.state.sequence,
        "floor": vault.root.floor,
        "recent": [pair(one) for one in vault.recent],
        "history": history | ({"origin": pair(limit.origin)} if limit.origin else {}),
        "records": [record_of(one) for key in sorted(vault.entries) for one in vault.entries[key]],
    } | {name: one for name, one in (lists | told).items() if one}


def whole(file):
    """A file in the form of the files of vectors.json, without a base."""
    return {"edits": [{"offset": 0, "delete": 0, "insert": file.hex()}]}


def case_of(ours, theirs, ancestor, undoes, time, result, report):
    """The contents of a file with one merge, as another implementation must make it."""
    files = {"ours": ours, "theirs": theirs} | ({"ancestor": ancestor} if ancestor else {})
    case = {name: name for name in files} | {"name": "merge", "comment": "", "undoes": undoes, "time": time}
    case["expect"] = expectation(ours, theirs, not ancestor, result, report)
    return document({name: whole(file) for name, file in files.items()}, [case])


def document(files, cases):
    return {"credential": text_of({"key_text": CI_KEY}), "files": files, "cases": cases}


# What the files are


class Files:
    """Vaults by name, what is made of them, and their merges."""

    def __init__(self, folder, base):
        self.path, self.base = [os.path.join(folder, name) for name in ("ours", "theirs")], base
        self.made, self.origins, self.cases, self.wrong = {}, {}, [], []

    def add(self, name, file):
        self.made[name] = file

    def describe(self, name, description):
        self.add(name, d.NewFile(description).file)

    def changed(self, name, change, *files):
        """Adds the file that `change` makes of the first of these."""
        for path, file in zip(self.path, files):
            with open(path, "wb") as stream:
                stream.write(self.made[file])
        change(seeded_random(f"coffer vectors 1: merges: {name}"))
        with open(self.path[0], "rb") as stream:
            self.made[name] = stream.read()

    def commit(self, name, of, *changes):
        self.origins[name] = of
        self.changed(name, lambda random: c.commit(self.path[0], KEY, changes, random, copy=False), of)

    def rewrite(self, name, of, **description):
        description = {"now": TIME} | description
        self.changed(name, lambda random: c.rewrite(self.path[0], KEY, description, random), of)

    def merge(self, name, ours, theirs, ancestor=None, undoes=False, time=TIME):
        """Returns the report of the merge."""
        more, reports = (time, self.made.get(ancestor), undoes), []
        self.changed(name, lambda random: reports.append(m.merge(*self.path, KEY, random, *more)[1]), ours, theirs)
        return reports[0]

    def slots(self, name):
        """The ids of the key slots, by their labels."""
        return {slot.label: slot.id.hex() for slot in f.parse_header(self.made[name]).slots if slot.known}

    def case(self, name, comment, ours, theirs, then, ancestor=None, undoes=False, time=TIME, outcome=MERGED, **more):
        """Adds a merge, which must have what `then` and the rest say of it."""
        case = {"name": name, "comment": comment, "ours": ours, "theirs": theirs, "time": time}
        case |= ({"ancestor": ancestor} if ancestor else {}) | ({"undoes": True} if undoes else {})
        try:
            report = self.merge("merge", ours, theirs, ancestor, undoes, time)
        except f.Refused as refused:
            case["expect"] = {"outcome": refused.outcome}
        else:
            is_joined = not m.opened_ancestor(self.made.get(ancestor), r.read_vault(self.made[ours], KEY))
            case["expect"] = expectation(self.made[ours], self.made[theirs], is_joined, self.made.pop("merge"), report)
        present = {found[0].record.account for found in r.read_vault(self.made[ours], KEY).entries.values()}
        erased = [account for account, records in then.items() if not records and account in present]
        wanted = {"outcome": outcome, "erased": erased, "left_out": [], **then, **more}
        if (found := stated(case["expect"], wanted)) != wanted:
            self.wrong.append(f"{NAME}: {name}: {found}, and not {wanted}")
        assert name not in {one["name"] for one in self.cases}, name
        self.cases.append(case)

    def text(self):
        """The content of merges.json."""
        lines = lambda found: ",\n".join(found)
        files = lines(f"{json.dumps(name)}: {json.dumps(self.edits(name, file))}" for name, file in self.made.items())
        cases = lines(json.dumps(one) for one in self.cases)
        credential = json.dumps(document({}, [])["credential"])
        return f'{{"credential": {credential},\n"files": {{\n{files}\n}},\n"cases": [\n{cases}\n]}}\n'

    def edits(self, name, file):
        """The file as edits of the one that it was committed to, or of the base."""
        if len(file) < f.PAGES:
            return whole(file)
        of = self.origins.get(name, self.base)
        base = self.made[of]
        edits = difference(base, file, len(f.parse_header(base).raw) + f.PAGES)
        return {"vault": BASE if of == self.base else of, "edits": edits}


MARKS = (("conflict", "!"), ("twin", "="), ("keeps_nothing", "*"), ("kept_nothing", "+"))


def stated(expect, names):
    """What the case says of these names."""
    found = {"outcome": expect["outcome"], "left_out": expect.get("left_out", []), "erased": expect.get("erased", [])}
    if "records" in expect:
        texts, history = {}, expect["history"]
        for one in expect["records"]:
            text = bytes.fromhex(one["value"]).decode() if "value" in one else "-"
            text += "".join(mark for field, mark in MARKS if field in one)
            texts.setdefault(one["account"], []).append(text)
        slots = [f.parse_key_slot(f.Cursor(bytes.fromhex(slot), "a slot")) for slot in expect["slots"]]
        found |= {"limit": (history["versions"], history["days"]), "floor": expect["floor"]}
        found["slots"] = [slot.label if slot.known else slot.raw[4:].decode() for slot in slots]
        found["former"] = [one["label"] for one in expect.get("former_slots", [])]
        found |= {name: " ".join(texts.get(name, [])) for name in "abcd"}
    return {name: found.get(name) for name in names}
