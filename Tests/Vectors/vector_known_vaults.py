"""known_vaults.json: records of places, vaults found there, and the judgement of each pair."""

import json
import struct
from dataclasses import replace

import known_vaults as k
import vault_format as f
import vault_reader as r
from vector_bases import KNOWN_MASTERS, OTHER_KEY, put
from vector_outcome import credential_of
from vector_suite import difference, each, edited, flip, number, patch

PATH = "/home/user/.local/share/coffer/default.vault"
OTHER_PATH = "/home/user/two/default.vault"
SLOT_B, PATH_AT = 512, 1024
POLICY, SCOPE, RESERVED, VAULT_ID, COMMITMENT, SEQUENCE, TAG, MAC, ZEROS, HASH = 8, 9, 10, 16, 32, 64, 72, 88, 120, 496


def add(suite):
    """The vaults that are judged, as vectors of their own. `known` has a root of 10 and frames 11 to 14."""
    former = [f.subkey(master, f.KNOWN_VAULTS).hex() for master in KNOWN_MASTERS]
    others = [bytes([number]).hex() * 32 for number in range(1, 65)]

    def tail(*values):
        return lambda d: d.update(tail=[[put("one", value)] for value in values])

    def base(sequence, tail=(), **more):
        return lambda d: d.update(base={**d["base"], "sequence": sequence}, tail=list(tail), **more)

    two = [[put("one", "a")], [put("one", "b")]]
    for name, comment, vault, change in (
        ("later", "change 15", "known", tail("11", "12", "13", "14", "15")),
        ("earlier", "change 13", "known", tail("11", "12", "13")),
        ("root-alone", "change 10, the root's", "known", tail()),
        ("fork-14", "another change 14", "known", tail("11", "12", "13", "other")),
        ("fork-14-later", "another change 14, and a change 15", "known", tail("11", "12", "13", "other", "15")),
        ("fork-12-later", "another change 12, and changes to 15", "known", tail("11", "other", "13", "14", "15")),
        ("rewritten-14", "a root of 14", "known", base(14)),
        ("rewritten-15", "a root of 15", "known", base(15)),
        ("rewritten-14-later", "a root of 14, and changes to 16", "known", base(14, two)),
        ("high", "a root of 102, and changes to 104", "known", base(102, two)),
        ("rekeyed-later", "the new master key, and changes to 17", "rekeyed", base(15, two)),
        ("rekeyed-14", "a new master key with a root of 14", "rekeyed", base(14)),
        ("rekeyed-13-later", "a new master key with a root of 13, and changes to 15", "rekeyed", base(13, two)),
        ("rekeyed-2-later", "a new master key with a root of 2, and changes to 4", "rekeyed", base(2, two)),
        ("rekeyed-twice", "two former master keys", "rekeyed", base(15, lineage=[others[0], former[0]])),
        ("rekeyed-64", "the former key is the last of 64", "rekeyed", base(15, lineage=others[:63] + former[:1])),
        ("rekeyed-65", "64 later keys: the former is dropped", "rekeyed", base(15, lineage=others)),
        ("rekeyed-own-key", "a lineage of its own subkey 7", "rekeyed", base(15, lineage=[former[1]])),
    ):
        suite.resealed(f"ok-known-{name}", comment, vault, f.OK, change=change)
    add_recent(suite, base)
    suite.flipped("known-slot-0", "one slot is damaged", "known", f.RECOVERED, "commit slot 0", 0)
    slot = suite.place("known", "commit slot 0")
    both = (slot, 1, b"\x5a"), (slot + f.PAGE, 1, b"\x5a")
    suite.damage("known-both-slots", "both slots are damaged", "known", f.TAMPERED, *both)
    suite.intact("known-wrong-key", "another key", "known", f.WRONG_KEY, credential={"key_text": OTHER_KEY})
    suite.resealed(
        "ok-known-rekeyed-no-lineage",
        "a new master key without a lineage",
        "rekeyed",
        f.OK,
        change=lambda d: d.pop("lineage"),
    )


def add_recent(suite, base):
    """Rewritten vaults whose root has what `known` was, and what it was not: in changes 10 to 14."""
    tags = {state.sequence: state.tail_tag.hex() for state in suite.made["known"].steps}
    pairs = [[sequence, tag] for sequence, tag in tags.items()]
    merged = pairs[:4] + [[14, "00" * 16], pairs[4]]
    forked = pairs[:4] + [[14, "5a" * 16]]
    two = [[put("one", "a")], [put("one", "b")]]
    for name, comment, vault, recent, floor, tail in (
        ("recent", "a root of 15 with the changes 10 to 14", "known", pairs, 10, []),
        ("recent-later", "a root of 15 with the changes 10 to 14, and changes to 17", "known", pairs, 10, two),
        ("recent-floor-9", "the same, and a floor of 9, which was no change", "known", pairs, 9, []),
        ("recent-floor-12", "a root of 15 with the changes 12 to 14", "known", pairs[2:], 12, []),
        ("recent-floor-14", "a root of 15 with change 14 alone", "known", pairs[4:], 14, []),
        ("recent-gap", "a root of 15 with the changes 10 and 14: 11 to 13 were one", "known", pairs[::4], 10, []),
        ("recent-fork", "a root of 15 with another change 14", "known", forked, 10, []),
        ("recent-merge", "a root of 15 with the changes 10 to 14, and another 14", "known", merged, 10, []),
        ("rekeyed-recent", "a new master key with the changes 10 to 14", "rekeyed", pairs, 10, []),
        ("rekeyed-recent-later", "the same, and changes to 17", "rekeyed", pairs, 10, two),
        ("rekeyed-recent-fork", "a new master key with another change 14", "rekeyed", forked, 10, []),
        ("rekeyed-recent-merge", "a new master key, and both changes 14", "rekeyed", merged, 10, []),
        ("rekeyed-recent-floor-14", "a new master key with change 14 alone", "rekeyed", pairs[4:], 14, []),
    ):
        change = base(15, tail)
        description = {"sequence": 15, "recent": recent, "floor": floor}
        full = lambda d, change=change, description=description: [change(d), d["base"].update(description)]
        suite.resealed(f"ok-known-{name}", comment, vault, f.OK, change=full)


class Judgements:
    """Collects the records and the entries of known_vaults.json."""

    def __init__(self, suite):
        self.suite, self.records, self.entries = suite, {}, []
        self.vectors = {entry["name"]: entry for entry in suite.entries}
        made = {name: suite.made[name] for name in ("known", "rekeyed")}
        self.vaults = {
            name: r.read_with_master(one.file, f.parse_header(one.file), one.master) for name, one in made.items()
        }

    def slot(self, vault="known", sequence=None, policy=k.STRICT, path=PATH, **changed):
        """A slot for a state of a vault; above its last change with a tag of 7s."""
        opened = self.vaults[vault]
        tags = {opened.root.sequence: opened.state.root_tag} | {one.sequence: one.tag for one in opened.frames}
        sequence = opened.state.sequence if sequence is None else sequence
        slot = k.seen_now(opened, path.encode(), policy)
        slot = replace(slot, sequence=sequence, tail_tag=tags.get(sequence, b"\x07" * 16))
        slot = replace(slot, **changed)
        return replace(slot, mac=k.slot_mac(f.subkey(opened.master, f.KNOWN_VAULTS), path.encode(), slot)).encode()

    def authenticated(self, slot, text=PATH.encode()):
        """The first 496 bytes of a slot with a MAC that is right for them."""
        message = b"coffer-known-vault" + struct.pack("<I", len(text)) + text + slot[8:MAC]
        mac = f.blake2b(256, message, f.subkey(self.vaults["known"].master, f.KNOWN_VAULTS))
        return slot[:MAC] + mac + slot[ZEROS:]

    def record(self, name, first, second=None, path=PATH):
        self.records[name] = first + (second or first) + struct.pack("<H", len(path.encode())) + path.encode()

    def vault_record(self, name, vault, path=PATH):
        """The record of the vault, whose master key was seen at `path`."""
        self.records[name] = k.made_of_vault(self.vaults[vault], path.encode())

    def add(
        self, name, comment, record, vector, judgement, written=None, sync=False, fault=None, path=PATH, half=False,
        of_vault=None, of_vault_fault=None,
    ):
        entry = {"name": name, "comment": comment, "record": record, "path": path, "vector": vector}
        data = self.records[record] if record else None
        vault_data = self.records[of_vault] if of_vault else None
        if of_vault:
            entry["vault_record"] = of_vault
        if of_vault_fault:
            faulty = of_vault_fault(vault_data)
            entry["vault_edits"] = difference(vault_data, faulty, 0)
            assert edited(vault_data, {"edits": entry["vault_edits"]}) == faulty != vault_data, name
            vault_data = faulty
        if fault:
            faulty = fault(data)
            entry["edits"] = difference(data, faulty, 0)
            assert edited(data, entry) == faulty != data, name
            data = faulty
        entry["expect"] = {"judgement": judgement}
        if judgement in (k.ACCEPTED, k.FIRST_USE):
            after = self.after(data, vector, path)
            entry["expect"] |= {"half_damaged": half, "written": written, "sync_first": sync}
            entry["expect"]["record_blake2b_256"] = f.blake2b(256, after).hex()
            entry["expect"] |= of_vault_after(data, vault_data, opened(self.suite, self.vectors[vector]), path)
        assert all(name != other["name"] for other in self.entries), name
        self.entries.append(entry)

    def after(self, data, vector, path):
        """The record as it is afterwards."""
        vault = opened(self.suite, self.vectors[vector])
        if data is None:
            return k.made(vault, path.encode(), k.STRICT)
        return k.raised(data, vault, path.encode()).data

    def json(self):
        records = ",\n".join(f'"{name}": "{data.hex()}"' for name, data in self.records.items())
        entries = ",\n".join(json.dumps(entry) for entry in self.entries)
        return f'{{"records": {{\n{records}\n}},\n"judgements": [\n{entries}\n]}}\n'


def of_vault_after(data, vault_data, vault, path):
    """What becomes of the record of the vault: nothing if only the place counts."""
    if data and k.Record.parse(data, path.encode()).seen.only_here:
        change = k.Raise(None, vault_data)
    else:
        path = path.encode()
        made = k.Raise("anew", k.made_of_vault(vault, path))
        change = k.raised(vault_data, vault, path, of_vault=True) if vault_data else made
    digest = f.blake2b(256, change.data).hex() if change.data else None
    return {"vault_written": change.written, "vault_record_blake2b_256": digest}


def opened(suite, vector):
    """The vault of a vector; `Refused` if it does not open."""
    file = edited(suite.made[vector["vault"].removesuffix(".vault")].file, vector)
    return r.read_vault(file, credential_of(vector["credential"]), r.Limits(**vector.get("limits", {})))


def outcome_of(suite, records, entry):
    """What this implementation makes of an entry, in the shape of its `expect`."""
    path = entry["path"].encode()
    vector = next(one for one in suite.entries if one["name"] == entry["vector"])
    try:
        data = record = None
        if entry["record"]:
            data = edited(records[entry["record"]], entry)
            record = k.Record.parse(data, path)
        vault_data = of_vault = None
        if "vault_record" in entry:
            vault_data = edited(records[entry["vault_record"]], {"edits": entry.get("vault_edits", [])})
        file = edited(suite.made[vector["vault"].removesuffix(".vault")].file, vector)
        k.judge_identity(record, f.parse_header(file).vault_id)
        vault = opened(suite, vector)
        if vault_data is not None and not (record and record.seen.only_here):
            of_vault = k.Record.parse(vault_data, k.vault_subject(vault.header.vault_id))
        judgement = k.judge(record, vault, of_vault)
    except f.Refused as refused:
        return {"judgement": refused.outcome}
    change = k.raised(data, vault, path) if record else k.Raise("anew", k.made(vault, path, k.STRICT))
    return {
        "judgement": judgement,
        "half_damaged": any(one and one.is_half_damaged for one in (record, of_vault)),
        "written": change.written,
        "sync_first": change.sync,
        "record_blake2b_256": f.blake2b(256, change.data).hex(),
    } | of_vault_after(data, vault_data, vault, entry["path"])


def failures(suite, text):
    described = json.loads(text)
    records = {name: bytes.fromhex(data) for name, data in described["records"].items()}
    for entry in described["judgements"]:
        found = outcome_of(suite, records, entry)
        if found != entry["expect"]:
            yield f"{entry['name']}: {entry['expect']} expected, {found} found"


# The cases


def text(suite):
    judgements = Judgements(suite)
    records(judgements)
    states(judgements)
    recent(judgements)
    keys(judgements)
    policies(judgements)
    damages(judgements)
    raises(judgements)
    vaults(judgements)
    return judgements.json()


def records(j):
    versioned = {"policy": k.VERSIONED}
    for sequence in (8, 9, 10, 11, 12, 14, 15):
        j.record(f"strict-{sequence}", j.slot(sequence=sequence))
    j.record("versioned-14", j.slot(**versioned))
    j.record("only-here-14", j.slot(only_here=True))
    j.record("only-here-9", j.slot(sequence=9, only_here=True))
    j.record("only-here-rekeyed-15", j.slot("rekeyed", only_here=True))
    for name, path in (("", PATH), ("-elsewhere", OTHER_PATH)):
        j.vault_record(f"key{name}", "known", path)
        j.vault_record(f"rekeyed-key{name}", "rekeyed", path)
    j.record("rekeyed-15", j.slot("rekeyed"))
    j.record("rekeyed-versioned-15", j.slot("rekeyed", **versioned))
    j.record("strict-10-14", j.slot(sequence=10), j.slot())
    j.record("strict-14-10", j.slot(), j.slot(sequence=10))
    j.record("strict-10-73", j.slot(sequence=10), j.slot(sequence=73))
    j.record("strict-10-74", j.slot(sequence=10), j.slot(sequence=74))
    j.record("strict-74-10", j.slot(sequence=74), j.slot(sequence=10))
    j.record("known-10-rekeyed-15", j.slot(sequence=10), j.slot("rekeyed"))
    j.record("versioned-10-14", j.slot(sequence=10, **versioned), j.slot(**versioned))
    j.record("another-tag-14", j.slot(tail_tag=bytes(16)))
    j.record("another-tag-10", j.slot(sequence=10, tail_tag=bytes(16)))
    j.record("another-tag-12", j.slot(sequence=12, tail_tag=bytes(16)))
    j.record("another-tag-9", j.slot(sequence=9, tail_tag=bytes(16)))
    j.record("versioned-another-14", j.slot(tail_tag=bytes(16), **versioned))
    j.record("equal-a-right", j.slot(), j.slot(tail_tag=bytes(16)))
    j.record("equal-b-right", j.slot(tail_tag=bytes(16)), j.slot())
    j.record("root-path", j.slot(path="/x"), path="/x")
    j.record("last-sequence", j.slot(sequence=(1 << 62) - 1))


def states(j):
    """The same master key."""
    ok, back = k.ACCEPTED, f.ROLLED_BACK
    j.add("first-use", "no record", None, "ok-known", k.FIRST_USE, "anew")
    j.add("first-use-recovered", "no record, and one slot is damaged", None, "known-slot-0", k.FIRST_USE, "anew")
    j.add("same", "what was seen", "strict-14", "ok-known", ok)
    j.add("same-recovered", "what was seen, and one slot is damaged", "strict-14", "known-slot-0", ok)
    j.add("later-is-seen", "the file is at change 14, and 15 was seen", "strict-15", "ok-known", back)
    j.add("earlier", "the file is at change 13, and 14 was seen", "strict-14", "ok-known-earlier", back)
    j.add("root-alone", "the file is at change 10, and 14 was seen", "strict-14", "ok-known-root-alone", back)
    j.add("root-alone-seen", "the root was seen", "strict-10", "ok-known-root-alone", ok)
    j.add("later", "change 14 was seen, its tag agrees", "strict-14", "ok-known-later", ok, "B")
    j.add("later-than-12", "change 12 was seen, its tag agrees", "strict-12", "ok-known", ok, "B")
    j.add("later-than-root", "the root was seen, its tag agrees", "strict-10", "ok-known", ok, "B")
    j.add("fork-same", "another change 14 was seen", "strict-14", "ok-known-fork-14", back)
    j.add("fork-later", "another change 14 was seen below the last", "strict-14", "ok-known-fork-14-later", back)
    j.add("fork-12", "another change 12 was seen in the tail", "strict-12", "ok-known-fork-12-later", back)
    j.add("fork-12-seen-14", "changes after a fork were seen", "strict-14", "ok-known-fork-12-later", back)
    j.add("fork-after-seen", "change 12 was seen, the fork is later", "strict-12", "ok-known-fork-14-later", ok, "B")
    j.add("root-of-another-tag", "change 14 was seen, and a root of 14", "strict-14", "ok-known-rewritten-14", back)
    j.add(
        "root-of-another-tag-later",
        "change 14 was seen, and a root of 14 with frames",
        "strict-14",
        "ok-known-rewritten-14-later",
        back,
    )
    j.add("below-root", "change 14 was seen, the root is 15", "strict-14", "ok-known-rewritten-15", ok, "B")
    j.add("below-root-9", "change 9 was seen, the root is 10", "strict-9", "ok-known", ok, "B")
    j.add("another-tag", "change 14 was seen with another tag", "another-tag-14", "ok-known", back)
    j.add(
        "another-tag-rewritten",
        "a fork below the root is not noticed",
        "another-tag-14",
        "ok-known-rewritten-15",
        ok,
        "B",
    )
    j.add("seen-last-sequence", "the highest sequence was seen", "last-sequence", "ok-known", back)


def recent(j):
    """The state that was seen is usually older than the root, whose recent changes prove it, contradict it or end above it."""
    ok, back, key = k.ACCEPTED, f.ROLLED_BACK, f.ANOTHER_KEY
    for name, comment, record, vector, judgement in (
        ("14", "change 14 was seen, its pair agrees", "strict-14", "recent", ok),
        ("12", "change 12 was seen, its pair agrees", "strict-12", "recent", ok),
        ("root", "the root before was seen, its pair agrees", "strict-10", "recent", ok),
        ("14-later", "change 14 was seen, and there are frames", "strict-14", "recent-later", ok),
        ("another-14", "another change 14 was seen", "another-tag-14", "recent", back),
        (
            "another-14-later",
            "another change 14 was seen, and there are frames",
            "another-tag-14",
            "recent-later",
            back,
        ),
        ("another-12", "another change 12 was seen", "another-tag-12", "recent", back),
        ("another-10", "another change at the floor was seen", "another-tag-10", "recent", back),
        ("below-floor", "change 9 was seen, below the floor", "strict-9", "recent", ok),
        ("another-below-floor", "another change 9 was seen, below the floor", "another-tag-9", "recent", ok),
        ("at-floor-without-pair", "change 9 was seen, at a floor without a pair", "strict-9", "recent-floor-9", back),
        ("below-floor-9", "change 8 was seen, below a floor without a pair", "strict-8", "recent-floor-9", ok),
        ("at-floor-12", "change 12 was seen, at the floor", "strict-12", "recent-floor-12", ok),
        ("another-at-floor-12", "another change 12 was seen, at the floor", "another-tag-12", "recent-floor-12", back),
        ("below-floor-12", "change 11 was seen, below the floor", "strict-11", "recent-floor-12", ok),
        ("14-alone", "change 14 was seen, the only pair", "strict-14", "recent-floor-14", ok),
        ("another-14-alone", "another change 14 was seen, and one pair", "another-tag-14", "recent-floor-14", back),
        ("12-below-14-alone", "change 12 was seen, below the only pair", "another-tag-12", "recent-floor-14", ok),
        ("gap", "change 12 was seen, between the pairs: it was no state", "strict-12", "recent-gap", back),
        ("gap-14", "change 14 was seen, the last pair", "strict-14", "recent-gap", ok),
        ("fork", "change 14 was seen, and the root has another", "strict-14", "recent-fork", back),
        ("fork-12", "change 12 was seen, the fork is later", "strict-12", "recent-fork", ok),
        ("merge", "change 14 of one side of a merge was seen", "strict-14", "recent-merge", ok),
        ("merge-other", "change 14 of the other side of a merge was seen", "another-tag-14", "recent-merge", ok),
        ("merge-12", "change 12 was seen, before a merge", "strict-12", "recent-merge", ok),
        ("merge-another-12", "another change 12 was seen, before a merge", "another-tag-12", "recent-merge", back),
        ("15", "change 15 was seen, and the root is another 15", "strict-15", "recent", back),
        ("rekeyed", "change 14 was seen under the former key, its pair agrees", "strict-14", "rekeyed-recent", ok),
        ("rekeyed-root", "change 10 was seen under the former key", "strict-10", "rekeyed-recent", ok),
        ("rekeyed-later", "the same, and there are frames", "strict-14", "rekeyed-recent-later", ok),
        ("rekeyed-another", "another change 14 under the former key", "another-tag-14", "rekeyed-recent", back),
        ("rekeyed-below-floor", "change 9 under the former key, below the floor", "strict-9", "rekeyed-recent", ok),
        ("rekeyed-fork", "change 14, and the new key has another", "strict-14", "rekeyed-recent-fork", back),
        ("rekeyed-merge", "change 14 of one side of a merge", "strict-14", "rekeyed-recent-merge", ok),
        ("rekeyed-merge-other", "change 14 of the other side", "another-tag-14", "rekeyed-recent-merge", ok),
        ("rekeyed-14-alone", "change 14, the only pair", "strict-14", "rekeyed-recent-floor-14", ok),
        ("rekeyed-12-below", "change 12, below the only pair", "another-tag-12", "rekeyed-recent-floor-14", ok),
        ("rekeyed-15", "change 15 was seen under the former key", "strict-15", "rekeyed-recent", key),
        ("versioned-another", "another change 14, under version control", "versioned-another-14", "recent", ok),
        ("versioned-rekeyed", "the same, and a new master key", "versioned-another-14", "rekeyed-recent", ok),
        ("older-key", "a former master key with the changes", "rekeyed-15", "recent", key),
    ):
        written = None if judgement != ok else "anew" if "rekeyed" in vector else "B"
        j.add(f"recent-{name}", comment, record, f"ok-known-{vector}", judgement, written)


def keys(j):
    """Other vaults and other master keys."""
    ok, vault, key = k.ACCEPTED, f.ANOTHER_VAULT, f.ANOTHER_KEY
    j.add("another-vault", "another vault under the same key", "strict-14", "ok-small", vault)
    j.add("another-vault-passphrase", "another vault with a passphrase", "strict-14", "ok-default-cost", vault)
    j.add("another-vault-wrong-key", "another vault that the key does not open", "strict-14", "wrong-key", vault)
    j.add("wrong-key", "the vault, and a key that opens nothing", "strict-14", "known-wrong-key", f.WRONG_KEY)
    j.add("tampered", "the vault, and both slots damaged", "strict-14", "known-both-slots", f.TAMPERED)
    j.add("rekeyed", "a new master key that names the one seen", "strict-14", "ok-rekeyed", ok, "anew")
    j.add("rekeyed-later", "the same, with later changes", "strict-14", "ok-known-rekeyed-later", ok, "anew")
    j.add("rekeyed-seen-9", "the same; an early change was seen", "strict-9", "ok-rekeyed", ok, "anew")
    j.add("rekeyed-seen-15", "the root is as high as what was seen", "strict-15", "ok-rekeyed", key)
    j.add("rekeyed-14", "the root is as high as what was seen: 14", "strict-14", "ok-known-rekeyed-14", key)
    j.add(
        "rekeyed-13-later",
        "the root is below what was seen, the tail above",
        "strict-14",
        "ok-known-rekeyed-13-later",
        key,
    )
    j.add("rekeyed-twice", "the key seen is the second of the lineage", "strict-14", "ok-known-rekeyed-twice", ok, "anew")
    j.add("rekeyed-64", "the key seen is the last of 64", "strict-14", "ok-known-rekeyed-64", ok, "anew")
    j.add("rekeyed-65", "the key seen is no longer in the lineage", "strict-14", "ok-known-rekeyed-65", key)
    j.add("rekeyed-own-key", "a lineage without the key seen", "strict-14", "ok-known-rekeyed-own-key", key)
    j.add("rekeyed-no-lineage", "no lineage", "strict-14", "ok-known-rekeyed-no-lineage", key)
    j.add("older-key", "a master key from before the one seen", "rekeyed-15", "ok-known", key)
    j.add("older-key-high", "the same, with a higher sequence", "rekeyed-15", "ok-known-high", key)
    j.add("rekeyed-same", "the new master key, seen before", "rekeyed-15", "ok-rekeyed", ok)
    j.add(
        "rekeyed-seen-later",
        "the new master key, seen before, and later changes",
        "rekeyed-15",
        "ok-known-rekeyed-later",
        ok,
        "B",
    )
    j.add(
        "older-key-in-other-slot",
        "a master key that only the older slot of the record names",
        "known-10-rekeyed-15",
        "ok-known-high",
        key,
    )
    wrong_mac = resigned(lambda slot: flip(MAC)(slot))
    j.add("mac", "a record with a wrong MAC", "strict-14", "ok-known", f.UNVERIFIABLE_RECORD, fault=wrong_mac)
    j.add("mac-rekeyed", "the same, and a new master key", "strict-14", "ok-rekeyed", key, fault=wrong_mac)
    j.add("mac-another-vault", "the same, and another vault", "strict-14", "ok-small", vault, fault=wrong_mac)
    for name, fault in {
        "policy": number(POLICY, "B", 1),
        "vault-id": flip(VAULT_ID),
        "commitment": flip(COMMITMENT),
        "sequence": number(SEQUENCE, "Q", 13),
        "tag": flip(TAG),
        "mac-end": flip(MAC + 31),
    }.items():
        judgement = {"vault-id": vault, "commitment": key}.get(name, f.UNVERIFIABLE_RECORD)
        comment = f"{name} changed in both slots, their hashes made for it"
        j.add(f"forged-{name}", comment, "strict-14", "ok-known", judgement, fault=resigned(fault))
    moved = each(lambda data: data[:PATH_AT], lambda data: data + struct.pack("<H", 2) + b"/y")
    j.add("another-place", "the record of /x at /y", "root-path", "ok-known", f.UNVERIFIABLE_RECORD, path="/y")
    j.add(
        "moved",
        "the same, with the path changed",
        "root-path",
        "ok-known",
        f.UNVERIFIABLE_RECORD,
        fault=moved,
        path="/y",
    )
    j.add("short-path", "a path of two bytes", "root-path", "ok-known", ok, path="/x")


def policies(j):
    """A place whose vault is under version control."""
    ok, key = k.ACCEPTED, f.ANOTHER_KEY
    record = "versioned-14"
    j.add("versioned-same", "what was seen", record, "ok-known", ok)
    j.add("versioned-earlier", "change 13, and 14 was seen", record, "ok-known-earlier", ok, "anew")
    j.add("versioned-root-alone", "change 10, and 14 was seen", record, "ok-known-root-alone", ok, "anew")
    j.add("versioned-fork", "another change 14", record, "ok-known-fork-14", ok, "anew")
    j.add("versioned-fork-later", "another change 14, and 15", record, "ok-known-fork-14-later", ok, "B")
    j.add("versioned-later", "change 15", record, "ok-known-later", ok, "B")
    j.add("versioned-later-in-place", "change 15, and the slots differ", "versioned-10-14", "ok-known-later", ok, "B")
    j.add("versioned-rekeyed", "a new master key", record, "ok-rekeyed", ok, "anew")
    j.add("versioned-rekeyed-14", "a new master key at the same change", record, "ok-known-rekeyed-14", ok, "anew")
    j.add("versioned-rekeyed-2-later", "a new master key, early", record, "ok-known-rekeyed-2-later", ok, "anew")
    j.add("versioned-no-lineage", "a new master key, no lineage", record, "ok-known-rekeyed-no-lineage", key)
    j.add("versioned-older-key", "an older master key", "rekeyed-versioned-15", "ok-known-high", key)
    j.add("versioned-another-vault", "another vault", record, "ok-small", f.ANOTHER_VAULT)
    wrong = resigned(flip(MAC))
    j.add("versioned-mac", "a wrong MAC", record, "ok-known", f.UNVERIFIABLE_RECORD, fault=wrong)


def resigned(fault):
    """The fault in both slots, and their hashes made anew."""

    def slot(data):
        data = fault(data[:HASH])
        return data + f.blake2b(128, data)

    return lambda record: slot(record[:SLOT_B]) + slot(record[SLOT_B:PATH_AT]) + record[PATH_AT:]


def damages(j):
    """Records that cannot be read."""
    bad = f.UNVERIFIABLE_RECORD
    both = {
        "magic": flip(0),
        "policy": flip(POLICY),
        "vault-id": flip(VAULT_ID),
        "sequence": flip(SEQUENCE),
        "zeros": flip(ZEROS),
        "hash": flip(HASH),
        "hash-end": flip(HASH + 15),
    }
    for name, fault in both.items():
        twice = lambda data, fault=fault: fault(data[:SLOT_B]) + fault(data[SLOT_B:PATH_AT]) + data[PATH_AT:]
        j.add(f"damaged-{name}", f"{name} in both slots", "strict-14", "ok-known", bad, fault=twice)
    forms = {
        "magic": patch(0, b"COFFERX"),
        "policy-2": number(POLICY, "B", 2),
        "policy-3": number(POLICY, "B", 3),
        "scope-2": number(SCOPE, "B", 2),
        "policy-255": number(POLICY, "B", 255),
        "reserved": flip(RESERVED),
        "reserved-last": flip(RESERVED + 5),
        "sequence-zero": number(SEQUENCE, "Q", 0),
        "sequence-2-62": number(SEQUENCE, "Q", 1 << 62),
        "sequence-most": number(SEQUENCE, "Q", (1 << 64) - 1),
        "zeros": flip(ZEROS),
        "zeros-last": flip(HASH - 1),
    }
    for name, fault in forms.items():
        comment = f"{name} in both slots, their MACs and hashes made for it"
        j.add(f"form-{name}", comment, "strict-14", "ok-known", bad, fault=resigned(each(fault, j.authenticated)))
    for version in (0, 2, 255):
        fault = resigned(number(7, "B", version))
        comment = f"version {version} in both slots: a later program wrote the record"
        j.add(f"version-{version}", comment, "strict-14", "ok-known", f.UNSUPPORTED_VERSION, fault=fault)
        half = lambda data, fault=fault: data[:SLOT_B] + fault(data)[SLOT_B:]
        comment = f"version {version} in slot B"
        j.add(f"version-{version}-half", comment, "strict-14", "ok-known", f.UNSUPPORTED_VERSION, fault=half)
    newer = resigned(number(7, "B", 2))
    comment = "version 2, and bytes that follow the text"
    j.add("version-2-longer", comment, "strict-14", "ok-known", f.UNSUPPORTED_VERSION, fault=lambda data: newer(data) + b"\0")
    newer_and_wrong = resigned(each(number(7, "B", 2), flip(RESERVED)))
    comment = "version 2, of which no other byte is known"
    j.add("version-2-and-reserved", comment, "strict-14", "ok-known", f.UNSUPPORTED_VERSION, fault=newer_and_wrong)
    wholes = {
        "empty": ("no bytes", lambda data: b""),
        "one-slot": ("one slot alone", lambda data: data[:SLOT_B]),
        "no-path": ("no path", lambda data: data[:PATH_AT]),
        "cut": ("the last byte is missing", lambda data: data[:-1]),
        "longer": ("a byte follows", lambda data: data + b"\0"),
        "path": ("another path", flip(-1)),
        "path-length": ("another length of the path", flip(PATH_AT)),
        "zeros": ("nothing but zeros", lambda data: bytes(len(data))),
    }
    for name, (comment, fault) in wholes.items():
        j.add(f"record-{name}", comment, "strict-14", "ok-known", bad, fault=fault)
    for name, offset in {"magic": 0, "tag": TAG, "zeros": 300, "hash": HASH}.items():
        for slot, at in (("A", 0), ("B", SLOT_B)):
            comment = f"{name} in slot {slot}; the other slot is the same state"
            name_of = f"half-{name}-{slot.lower()}"
            j.add(name_of, comment, "strict-14", "ok-known", k.ACCEPTED, slot, True, flip(at + offset), half=True)
    old, back = "strict-10-14", f.ROLLED_BACK
    torn = flip(SLOT_B + HASH)
    j.add(
        "half-newer",
        "the newer slot is torn: the older one holds",
        old,
        "ok-known",
        k.ACCEPTED,
        "B",
        True,
        torn,
        half=True,
    )
    j.add("half-older", "the older slot is torn", old, "ok-known", k.ACCEPTED, "A", True, flip(HASH), half=True)
    j.add("half-older-and-back", "the older slot is torn", old, "ok-known-earlier", back, fault=flip(HASH))
    accepted = "the newer slot is torn: the vault is not older than the older slot"
    j.add("half-newer-earlier", accepted, old, "ok-known-earlier", k.ACCEPTED, "B", True, torn, half=True)


def vaults(j):
    """The record of a vault, which has its master key for all places."""
    ok, first, key, bad = k.ACCEPTED, k.FIRST_USE, f.ANOTHER_KEY, f.UNVERIFIABLE_RECORD
    back = f.ROLLED_BACK
    former, new = "key-elsewhere", "rekeyed-key-elsewhere"
    subject = k.vault_subject(j.vaults["known"].header.vault_id)

    def first_use(name, comment, of_vault, vector, judgement, fault=None, half=False):
        written = "anew" if judgement == first else None
        j.add(
            f"vault-{name}", comment, None, vector, judgement, written, of_vault=of_vault, of_vault_fault=fault,
            half=half,
        )

    first_use("same-key", "the key that was seen elsewhere", former, "ok-known", first)
    first_use("same-key-here", "the key that was seen here, and no record of the place", "key", "ok-known", first)
    first_use("older-state", "an older state under the key that was seen elsewhere", former, "ok-known-earlier", back)
    first_use("another-state", "another history under that key", former, "ok-known-fork-12-later", back)
    first_use("rekeyed", "a successor of the key that was seen elsewhere", former, "ok-rekeyed", first)
    first_use("rekeyed-14", "a successor whose root is not higher", former, "ok-known-rekeyed-14", back)
    first_use("later-state", "a later state under the key that was seen elsewhere", former, "ok-known-later", first)
    first_use("below-the-floor", "the state that was seen is below the floor", former, "ok-known-rewritten-15", first)
    first_use("rekeyed-64", "the key seen is the last of 64", former, "ok-known-rekeyed-64", first)
    first_use("rekeyed-65", "the key seen is no longer in the lineage", former, "ok-known-rekeyed-65", key)
    first_use("no-lineage", "another key without a lineage", former, "ok-known-rekeyed-no-lineage", key)
    first_use("former-key", "a former key", new, "ok-known", key)
    first_use("former-key-high", "a former key with a higher change", new, "ok-known-high", key)
    first_use("former-key-here", "a former key at the place where the new one was seen", "rekeyed-key", "ok-known", key)
    first_use("another-vault", "the record is of another vault", new, "ok-small", bad)
    for name, record, vector, judgement, written in (
        ("place-agrees", "strict-14", "ok-known-later", ok, "B"),
        ("place-refuses", "strict-15", "ok-known", f.ROLLED_BACK, None),
        ("versioned", "versioned-14", "ok-known-earlier", ok, "anew"),
    ):
        comment = "the place and the vault have records of one key"
        j.add(f"vault-{name}", comment, record, vector, judgement, written, of_vault=former)
    j.add("vault-refuses", "the place accepts the former key", "strict-14", "ok-known", key, of_vault=new)
    j.add("vault-refuses-versioned", "the same, versioned", "versioned-14", "ok-known", key, of_vault=new)
    j.add("vault-raised", "a successor of both records", "strict-14", "ok-rekeyed", ok, "anew", of_vault=former)
    comment = "another branch with a later change: the place is versioned, and the record of the vault stays"
    j.add("vault-branch", comment, "versioned-14", "ok-known-fork-14-later", ok, "B", of_vault=former)
    j.add("vault-behind", "the place has the new key", "rekeyed-15", "ok-rekeyed", ok, of_vault=former)
    j.add("only-here", "a former key, only here", "only-here-14", "ok-known", ok, of_vault=new)
    j.add("only-here-later", "the same, and a later change", "only-here-14", "ok-known-later", ok, "B", of_vault=new)
    j.add("only-here-alone", "only here, and no record of the vault", "only-here-14", "ok-known", ok)
    j.add("only-here-older", "only here, and a change was seen", "only-here-14", "ok-known-earlier", f.ROLLED_BACK)
    comment = "only here, and the key was changed here"
    j.add("only-here-rekeyed", comment, "only-here-14", "ok-rekeyed", ok, "anew", of_vault=former)
    j.add("only-here-other-key", "only here, under another key", "only-here-rekeyed-15", "ok-known", key)
    damaged = each(flip(HASH), flip(SLOT_B + HASH))
    first_use("damaged", "both slots are damaged", former, "ok-known", bad, damaged)
    j.add(
        "only-here-damaged", "only here, and the record of the vault is damaged", "only-here-14", "ok-known", ok,
        of_vault=former, of_vault_fault=damaged,
    )
    first_use("half-a", "slot A is damaged", former, "ok-known", first, flip(HASH), half=True)
    first_use("half-b", "slot B is damaged", former, "ok-known", first, flip(SLOT_B + HASH), half=True)
    first_use("cut", "the last byte is missing", former, "ok-known", bad, lambda data: data[:-1])
    first_use("other-path", "another path, which the MAC does not name", former, "ok-known", bad, flip(-1))
    for name, fault in {
        "policy-0": number(POLICY, "B", 0),
        "policy-1": number(POLICY, "B", 1),
        "scope-1": number(SCOPE, "B", 1),
        "vault-id": flip(VAULT_ID),
        "sequence-0": number(SEQUENCE, "Q", 0),
    }.items():
        text = subject + OTHER_PATH.encode()
        authentic = lambda slot, text=text: j.authenticated(slot, text)
        comment = f"{name} in both slots, their MACs and hashes made for it"
        first_use(f"form-{name}", comment, former, "ok-known", bad, resigned(each(fault, authentic)))
    first_use("mac", "a wrong MAC", former, "ok-known", bad, resigned(flip(MAC)))
    first_use("mac-rekeyed", "a wrong MAC, and a new master key", former, "ok-rekeyed", key, resigned(flip(MAC)))
    j.add("of-vault-at-place", "the record of a vault in the place of that of a path", "key", "ok-known", bad)


def raises(j):
    """Which slot is written."""
    ok = k.ACCEPTED
    j.add("raise-b-in-place", "slot B was written last", "strict-10-14", "ok-known-later", ok, "B")
    j.add("raise-a-in-place", "slot A was written last", "strict-14-10", "ok-known-later", ok, "A")
    j.add("raise-63-ahead", "slot B is 63 ahead: it is written again", "strict-10-73", "ok-known-high", ok, "B")
    j.add(
        "raise-64-ahead",
        "slot B is 64 ahead: it is synchronised, and A is written",
        "strict-10-74",
        "ok-known-high",
        ok,
        "A",
        True,
    )
    j.add("raise-a-64-ahead", "slot A is 64 ahead", "strict-74-10", "ok-known-high", ok, "B", True)
    j.add("equal-a-right", "slots of one sequence: A is current, and right", "equal-a-right", "ok-known", ok)
    j.add("equal-b-right", "slots of one sequence: A is current, B right", "equal-b-right", "ok-known", f.ROLLED_BACK)
    j.add("raise-not-down", "nothing is written for what was seen", "strict-10-14", "ok-known", ok)
    j.add(
        "raise-rekeyed",
        "the slot written last names another key",
        "known-10-rekeyed-15",
        "ok-known-rekeyed-later",
        ok,
        "B",
    )
