"""Changes of one vault as vectors: what a writer keeps, leaves out and makes, of records, the root and key slots."""

import json
import os
import tempfile

import coffer_vault
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_history as h
import vault_reader as r
import vault_records as p
from vault_writer import seeded_random
from vector_bases import CI_KEY, NOW, PASSPHRASE
from vector_merges import hexadecimal, pair
from vector_outcome import credential_of
from vector_suite import edited, text_of

NAME, BASE = "writers.json", "writers.vault"
SERVICE = "com.example.app"
TIME = NOW + 3_600_000  # of each operation
CREDENTIALS = [text_of({"key_text": CI_KEY}), {"passphrase": PASSPHRASE}]
DONE = "done"


# What a file is


def record_of(entry):
    """A record of the file, without what is empty."""
    record = entry.record
    named = {"account": record.account, "sequence": record.sequence, "time": record.time}
    if record.is_put:
        named |= {"created": record.created, "value": entry.value.hex()}
    return named | ({"fields": hexadecimal(record.fields)} if record.fields else {})


def records_of(vault):
    """All records, by account and sequence."""
    entries = [one for found in vault.entries.values() for one in found]
    return {(one.record.account, one.record.sequence): record_of(one) for one in entries}


def slots_of(before, after):
    """The key slots: those that were there before, in their order, then new ones, which may be anywhere in the header.

    A number is the position in the old header of a slot with the same bytes.
    """
    old_slots, new = [slot.raw for slot in before.header.slots], []
    for slot in after.header.slots:
        if slot.raw in old_slots:
            yield old_slots.index(slot.raw)
            continue
        same = [at for at, one in enumerate(before.header.slots) if one.known and one.id == slot.id]
        named = {"type": slot.type, "label": slot.label, "created": slot.created}
        named |= {"recipient": slot.recipient.hex()} if slot.recipient else {}
        if not same:
            new.append(named)
        else:
            # A salt stays, and with it the commitment. A share does not.
            old = before.header.slots[same[0]]
            is_same = (old.header, old.commitment) == (slot.header, slot.commitment)
            assert is_same != bool(slot.recipient), slot
            yield named | {"of": same[0]}
    yield from new


def expectation(before, after):
    """What the file is after the operation. A record that is as it was before is not listed."""
    old, new = records_of(before), records_of(after)
    expect = {"outcome": DONE, "sequence": after.state.sequence}
    lists = {
        "records": [new[key] for key in sorted(new) if new[key] != old.get(key)],
        "dropped": sorted(list(key) for key in old.keys() - new.keys()),
    }
    if before.header.file_id != after.header.file_id:
        limit, known = after.root.history, p.KNOWN["root"]
        history = {"versions": limit.versions, "days": limit.days, "sequence": limit.sequence}
        lists["root"] = {
            "floor": after.root.floor,
            "recent": [pair(one) for one in after.recent],
            "history": history | ({"origin": pair(limit.origin)} if limit.origin else {}),
            "fields": hexadecimal((kind, data) for kind, data in after.root.fields if kind not in known),
            "taken": [pair(one) for one in after.root.taken],
            "lineage": len(after.root.lineage),
            "former_slots": [coffer_vault.described_former(one) for one in after.root.former],
            "compatible": after.header.compatible,
            "slots": list(slots_of(before, after)),
            "leases": coffer_vault.described_leases(after.leases),
            "has_new_master_key": before.master != after.master,
        }
    assert (before.header.vault_id, before.root.lookup_key) == (after.header.vault_id, after.root.lookup_key)
    return expect | {name: one for name, one in lists.items() if one}


# What is done to it


def put_of(one, vault):
    """The put that `set` makes: the time of creation is that of the present value."""
    found = vault.entries.get(p.lookup_id(vault.root.lookup_key, SERVICE, one["account"]), [])
    live = h.live(found)
    put = {name: one[name] for name in ("account", "value", "label", "expires", "attributes") if name in one}
    created = live.record.created if live else TIME
    return {"put": put | {"service": SERVICE, "created": created, "modified": TIME} | told(one)}, live


def told(one):
    return {"keeps_nothing": one["history"] == "none"} if "history" in one else {}


def operate(path, operation, credentials, random):
    """Does to the file what a case says."""
    key = credentials[0]
    with open(path, "rb") as stream:
        vault = r.read_vault(stream.read(), key)
    (kind, one), now = next(iter(operation.items())), {"now": TIME}
    slot_id = lambda at: vault.header.slots[at].id.hex()
    names = [{"service": SERVICE, "account": one.get("account", "")}]
    removal = {"remove": {**names[0], "time": TIME}}
    if kind == "set":
        c.commit(path, key, [put_of(one, vault)[0]], random)
    elif kind == "remove":
        c.commit(path, key, [{"remove": removal["remove"] | told(one)}], random)
    elif kind == "move":
        c.commit(path, key, c.moved(vault, (SERVICE, one["from"]), (SERVICE, one["to"]), TIME), random)
    elif kind == "rewrite":
        c.rewrite(path, key, now | one, random)
    elif kind == "purge":
        # The removal counts as a change, even if a value follows.
        change, live = put_of(one, vault)
        changes = [removal] if live else []
        if "value" in one:
            # Both are one change of a person, so fields are taken over.
            fields = p.fields_kept(live.record) if live else ()
            changes.append({"put": change["put"] | {"fields": hexadecimal(fields)}})
        c.rewrite(path, key, now | {"changes": changes, "purge": names}, random)
    elif kind == "add_slot":
        c.rewrite(path, key, now | {"add_slots": [described_slot(one)]}, random)
    elif kind == "replace_slot":
        more = {"remove_slots": [slot_id(one["slot"])], "add_slots": [described_slot(one)]}
        c.rewrite(path, key, now | more, random)
    else:
        assert kind == "rekey", kind
        removed = [slot_id(at) for at in one["without"] if vault.header.slots[at].known]
        c.rewrite(path, key, now | {"credentials": credentials, "remove_slots": removed}, random)


def described_slot(one):
    kind = "key" if "key" in one else "recipient"
    return {"type": kind, kind: one[kind], "label": one["label"], "created": TIME}


# The cases


class Cases:
    """Collects the cases of writers.json. `wrong` has a line for each that is not what is stated of it."""

    def __init__(self, suite, description):
        self.made, self.cases, self.wrong = d.NewFile(description).file, [], []
        self.vectors = {entry["name"]: entry for entry in suite.entries}
        self.files = suite.files()

    def add(self, name, comment, operation, then=None, root=None, slots=None, vector=None, outcome=DONE):
        """Adds an operation. `then` has the records that accounts must have afterwards, as `stated` writes them, `root`
        the types of the root's unknown fields, and `slots` the labels of the key slots."""
        case = {"name": name, "comment": comment} | ({"vector": vector} if vector else {}) | {"operation": operation}
        file, credentials = self.made, [credential_of(one) for one in CREDENTIALS]
        if vector:
            entry = self.vectors[vector]
            file, credentials = edited(self.files[entry["vault"]], entry), [credential_of(entry["credential"])]
        after = None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vault")
            with open(path, "wb") as stream:
                stream.write(file)
            os.chmod(path, 0o600)
            try:
                operate(path, operation, credentials, seeded_random(f"coffer vectors 1: writers: {name}"))
            except f.Refused as refused:
                case["expect"] = {"outcome": refused.outcome}
            with open(path, "rb") as stream:
                result = stream.read()
        if "expect" not in case:
            after = r.read_vault(result, credentials[0])
            case["expect"] = expectation(r.read_vault(file, credentials[0]), after)
        elif result != file:
            self.wrong.append(f"{NAME}: {name}: it was refused, and changed the file")
        found = case["expect"]["outcome"]
        if found != outcome:
            self.wrong.append(f"{NAME}: {name}: {found}")
        for account, wanted in (then or {}).items():
            if (found := stated(after, account)) != wanted:
                self.wrong.append(f"{NAME}: {name}: {account} has {found}, and not {wanted}")
        if root is not None and (found := types(field for field in after.root.fields if field[0] > p.TAKEN)) != root:
            self.wrong.append(f"{NAME}: {name}: the root has {found}")
        if slots is not None and (found := [slot.label or f"type {slot.type}" for slot in after.header.slots]) != slots:
            self.wrong.append(f"{NAME}: {name}: the slots are {found}")
        assert name not in {one["name"] for one in self.cases}, name
        self.cases.append(case)

    def text(self):
        """The content of writers.json."""
        head = {"vault": BASE, "credentials": CREDENTIALS, "time": TIME}
        lines = ",\n".join(json.dumps(one) for one in self.cases)
        return json.dumps(head)[:-1] + f',\n"cases": [\n{lines}\n]}}\n'


def types(fields):
    return " ".join(f"{kind:x}" for kind, _ in fields)


def stated(vault, account):
    """All records of an account: each value, or `-` for a remove, and the types of its fields."""
    found = vault.entries.get(p.lookup_id(vault.root.lookup_key, SERVICE, account), [])
    return " ".join(f"{one.value.decode() if one.record.is_put else '-'}[{types(one.record.fields)}]" for one in found)
