"""The operations of writers.json: one vault that has what there can be, and what each operation keeps of it.

The records of an account are a text: of each record the value, or `-` for a remove, and the types of its fields in
hexadecimal. 1 is the label, 2 the expiry, 3 attributes, 4 *since*, 5 *conflict*, 6 *twin*, 7 *keeps nothing*, 8 *kept
nothing* and 9 *origin*.
"""

import struct

import vault_format as f
import vault_records as p
from vector_bases import (
    FIRST_KEY,
    NOW,
    OTHER_KEY,
    OTHER_RECIPIENT,
    former,
    item,
    key_slot,
    noise,
    passphrase_slot,
    put,
    recipient_slot,
    remove,
    unknown_slot,
    vault,
)
from vector_writers import Cases

SECOND = 1000
# Of a later program: copied by a rewrite; also taken over when the secret is stored again; left out by a rewrite; both.
LATER = [[0x1001, "01"], [0x2002, "02"], [0x4003, "03"], [0x6004, "04"]]
OTHER_LATER = [[0x1005, "05"], [0x2006, "06"], [0x6007, "07"]]
KEPT_NOTHING = [p.KEPT_NOTHING, ""]


def birth(number):
    return struct.pack("<Q", number) + noise(16, f"writers: a state {number}")


def origin(number):
    return [p.ORIGIN, birth(number).hex()]


def stored(account, value, number, **more):
    return item(account, value, sequence=number, created=NOW, modified=NOW + number * SECOND, **more)


def removed(account, number, **more):
    return remove(account, time=NOW + number * SECOND, sequence=number, **more)


def described():
    """The vault."""
    metadata = {"label": "A label", "expires": NOW + 9_999, "attributes": {"b": "2", "c": ""}}
    items = [
        stored("fields", "f", 1, since=NOW - 5 * SECOND, fields=LATER, **metadata),
        stored("versions", "v1", 2, fields=LATER),
        stored("versions", "v2", 3, fields=[[0x2002, "aa"]]),
        stored("versions", "v3", 4, fields=LATER, label="third"),
        stored("conflict", "lost", 5, conflict=6, fields=[origin(3), *LATER]),
        stored("conflict", "won", 6, fields=[origin(4), [0x2002, "02"]]),
        stored("twin", "same", 7, twin=8, fields=LATER),
        stored("twin", "same", 8, fields=[origin(4), *LATER]),
        stored("keeps", "k1", 9),
        stored("keeps", "k2", 10, keeps_nothing=True, fields=LATER),
        stored("kept", "n1", 11),
        stored("kept", "n2", 12, fields=[KEPT_NOTHING, *LATER]),
        stored("removed", "r", 13, fields=LATER),
        removed("removed", 14, fields=[[1, "01"], origin(2), *LATER]),
        stored("gone", "g", 15, fields=LATER),
        removed("gone", 16, keeps_nothing=True),
        stored("plain", "p", 17),
    ]
    time = lambda number: {"created": NOW, "modified": NOW + number * SECOND}
    tail = [
        [put("tail", "t1", fields=LATER, **time(21)), put("tail", "t2", fields=OTHER_LATER, label="T", **time(22))],
        [put("tail removed", "tr", fields=LATER, **time(23))],
        [remove("tail removed", time=NOW + 24 * SECOND, fields=OTHER_LATER)],
    ]
    unknown = [unknown_slot(9, 1, b"later"), unknown_slot(2, 7, noise(40, "slot"))]
    recent = [[number, noise(16, f"writers: a state {number}").hex()] for number in (18, 19)]
    taken = b"".join(birth(number) for number in (7, 8))
    return vault(
        "writers",
        items,
        tail,
        [key_slot(), passphrase_slot(), recipient_slot(), *unknown],
        {"sequence": 20, "recent": recent, "items_per_block": 4},
        history={"versions": 10, "days": 0, "sequence": 3, "origin": {"sequence": 2, "tag": "11" * 16}},
        lineage=[FIRST_KEY, "22" * 32],
        former_slots=[former("old key", 2, f.KEY_SLOT), former("member", 5, is_trace=1)],
        root_fields=[[p.TAKEN, taken.hex()], *LATER],
        compatible=0x80000001,
        leases={"counter": 5, "held": [{"lookup_id": "33" * 16, "taking": "44" * 16, "end": NOW}]},
    )


SLOTS = ["ci", "laptop", "recipient", "type 9", "type 2"]
COPIED = "1001 2002"  # of LATER, by a rewrite
TAKEN_OVER = "2002 6004"  # of LATER, when the secret is stored again


def made(suite):
    cases = Cases(suite, described())
    stores(cases)
    removals(cases)
    moves(cases)
    rewrites(cases)
    key_slots(cases)
    refusals(cases)
    return cases


def new(account, value="new", **more):
    return {"set": {"account": account, "value": value.encode().hex(), **more}}


def stores(cases):
    every = "1001 2002 4003 6004"
    cases.add("set-new", "a name that the vault does not have", new("new"), {"new": "new[]"})
    cases.add(
        "set-fields",
        "a new value: fields that belong to the secret are taken over, and the time of creation is kept",
        new("fields"),
        {"fields": f"f[1 2 3 4 {every}] new[{TAKEN_OVER}]"},
    )
    cases.add(
        "set-fields-metadata",
        "a new value with a label, an expiry and attributes",
        new("fields", label="é", expires=NOW, attributes={"b": "", "a": "1"}),
        {"fields": f"f[1 2 3 4 {every}] new[1 2 3 {TAKEN_OVER}]"},
    )
    cases.add(
        "set-fields-keeping-nothing",
        "a new value that keeps nothing: fields are taken over all the same",
        new("fields", history="none"),
        {"fields": f"f[1 2 3 4 {every}] new[7 {TAKEN_OVER}]"},
    )
    cases.add(
        "set-versions",
        "a new value: the fields of the newest record count, not those of earlier ones",
        new("versions"),
        {"versions": f"v1[{every}] v2[2002] v3[1 {every}] new[{TAKEN_OVER}]"},
    )
    cases.add(
        "set-tail",
        "a new value after a change in the tail",
        new("tail"),
        {"tail": f"t1[{every}] t2[1 1005 2006 6007] new[2006 6007]"},
    )
    cases.add(
        "set-conflict",
        "a new value in place of several: it has neither conflict nor origin, and the others stay as they are",
        new("conflict"),
        {"conflict": f"lost[5 9 {every}] won[9 2002] new[2002]"},
    )
    cases.add(
        "set-twin",
        "a new value after a twin",
        new("twin"),
        {"twin": f"same[6 {every}] same[9 {every}] new[{TAKEN_OVER}]"},
    )
    for account, comment, kept in (
        ("keeps", "keeps nothing", f"k1[] k2[7 {every}]"),
        ("kept", "kept nothing", f"n1[] n2[8 {every}]"),
    ):
        for more, mark in (({}, "7 "), ({"history": "kept"}, ""), ({"history": "none"}, "7 ")):
            told = f"told {more['history']}" if more else "told nothing"
            cases.add(
                f"set-{account}-{told.replace(' ', '-')}",
                f"a new value after one that {comment}, {told} about earlier versions",
                new(account, **more),
                {account: f"{kept} new[{mark}{TAKEN_OVER}]"},
            )
    cases.add(
        "set-removed",
        "a new value after a removal: nothing is taken over, and it is created now",
        new("removed"),
        {"removed": f"r[{every}] -[1 9 {every}] new[]"},
    )
    cases.add(
        "set-gone",
        "a new value after a removal that keeps nothing: it keeps what comes before it",
        new("gone"),
        {"gone": f"g[{every}] -[7] new[]"},
    )
    cases.add(
        "set-tail-removed",
        "a new value after a removal in the tail",
        new("tail removed"),
        {"tail removed": f"tr[{every}] -[1005 2006 6007] new[]"},
    )


def removals(cases):
    every = "1001 2002 4003 6004"
    gone = lambda account, **more: {"remove": {"account": account, **more}}
    cases.add(
        "remove-fields",
        "a removal takes no field over",
        gone("fields"),
        {"fields": f"f[1 2 3 4 {every}] -[]"},
    )
    cases.add(
        "remove-fields-keeping-nothing",
        "a removal that keeps nothing",
        gone("fields", history="none"),
        {"fields": f"f[1 2 3 4 {every}] -[7]"},
    )
    cases.add(
        "remove-keeps", "the removal of a value that keeps nothing", gone("keeps"), {"keeps": f"k1[] k2[7 {every}] -[7]"}
    )
    cases.add("remove-kept", "the removal of a value that kept nothing", gone("kept"), {"kept": f"n1[] n2[8 {every}] -[7]"})
    cases.add(
        "remove-keeps-told-kept",
        "the removal of a value that keeps nothing, told to keep it",
        gone("keeps", history="kept"),
        {"keeps": f"k1[] k2[7 {every}] -[]"},
    )
    cases.add(
        "remove-conflict",
        "the removal of a secret with several values",
        gone("conflict"),
        {"conflict": f"lost[5 9 {every}] won[9 2002] -[]"},
    )


def moves(cases):
    every = "1001 2002 4003 6004"
    moved = "1001 2002"  # of LATER, with the value
    move = lambda old, new: {"move": {"from": old, "to": new}}
    cases.add(
        "move-fields",
        "another name: all fields but those that a rewrite leaves out, the times, and since when the value is known",
        move("fields", "new"),
        {"new": f"f[1 2 3 4 {moved}]", "fields": f"f[1 2 3 4 {every}] -[]"},
    )
    cases.add(
        "move-versions",
        "another name for a secret with earlier versions: each takes its own fields along",
        move("versions", "new"),
        {"new": f"v1[{moved}] v2[2002] v3[1 {moved}]", "versions": f"v1[{every}] v2[2002] v3[1 {every}] -[]"},
    )
    cases.add(
        "move-to-a-secret",
        "the name of another secret, whose time of creation stays: since, and none of the other secret's fields",
        move("versions", "tail"),
        {"tail": f"t1[{every}] t2[1 1005 2006 6007] v3[1 4 {moved}]"},
    )
    cases.add(
        "move-to-a-secret-with-since",
        "a value that had another name before: since stays",
        move("fields", "plain"),
        {"plain": f"p[] f[1 2 3 4 {moved}]"},
    )
    cases.add(
        "move-to-a-removed-secret",
        "the name of a removed secret with a version: the time of creation comes along",
        move("versions", "removed"),
        {"removed": f"r[{every}] -[1 9 {every}] v3[1 4 {moved}]"},
    )
    cases.add(
        "move-to-a-gone-secret",
        "the name of a removed secret without versions: it gets all versions",
        move("versions", "gone"),
        {"gone": f"g[{every}] -[7] v1[{moved}] v2[2002] v3[1 {moved}]"},
    )
    cases.add(
        "move-to-a-secret-that-keeps-nothing",
        "the name of a secret whose value keeps nothing",
        move("plain", "keeps"),
        {"keeps": f"k1[] k2[7 {every}] p[4 7]"},
    )
    cases.add(
        "move-keeps",
        "another name for a value that keeps nothing",
        move("keeps", "new"),
        {"new": f"k2[7 {moved}]", "keeps": f"k1[] k2[7 {every}] -[7]"},
    )
    cases.add(
        "move-kept",
        "another name for a value that kept nothing: it keeps nothing, as no merge is known under this name",
        move("kept", "new"),
        {"new": f"n1[] n2[7 {moved}]", "kept": f"n1[] n2[8 {every}] -[7]"},
    )
    cases.add(
        "move-twin",
        "another name for a secret with a twin: neither twin nor origin come along",
        move("twin", "new"),
        {"new": f"same[{moved}] same[{moved}]", "twin": f"same[6 {every}] same[9 {every}] -[]"},
    )


def rewrites(cases):
    copied = {
        "fields": f"f[1 2 3 4 {COPIED}]",
        "versions": f"v1[{COPIED}] v2[2002] v3[1 {COPIED}]",
        "conflict": f"lost[5 9 {COPIED}] won[9 2002]",
        "twin": f"same[6 {COPIED}] same[9 {COPIED}]",
        "keeps": f"k2[7 {COPIED}]",
        "kept": f"n1[] n2[8 {COPIED}]",
        "removed": f"r[{COPIED}] -[1 9 {COPIED}]",
        "gone": "",
        "tail": f"t1[{COPIED}] t2[1 1005 2006]",
        "tail removed": f"tr[{COPIED}] -[1005 2006]",
    }
    cases.add("rewrite", "a rewrite", {"rewrite": {}}, copied, COPIED, SLOTS)
    cases.add(
        "rewrite-limit-0",
        "a limit of no versions: those that stand beside the present value stay, and no removal",
        {"rewrite": {"history": {"versions": 0, "days": 0}}},
        copied | {"versions": f"v3[1 {COPIED}]", "kept": f"n2[8 {COPIED}]", "tail": "t2[1 1005 2006]"}
        | dict.fromkeys(("removed", "tail removed"), ""),
        COPIED,
        SLOTS,
    )
    cases.add(
        "rewrite-limit-1",
        "a limit of one version",
        {"rewrite": {"history": {"versions": 1, "days": 0}}},
        copied | {"versions": f"v2[2002] v3[1 {COPIED}]"},
    )
    cases.add(
        "rewrite-limit-raised",
        "a higher limit: what keeps nothing has dropped does not come back",
        {"rewrite": {"history": {"versions": 1000, "days": 36_500}}},
        copied,
    )
    purge = lambda account, **more: {"purge": {"account": account, **more}}
    cases.add(
        "purge",
        "a purge of a name: no record of it is left, and others are copied",
        purge("versions"),
        copied | {"versions": ""},
        COPIED,
        SLOTS,
    )
    cases.add("purge-removed", "a purge of a removed secret", purge("removed"), copied | {"removed": ""})
    cases.add("purge-conflict", "a purge of a secret with several values", purge("conflict"), copied | {"conflict": ""})
    value = b"new".hex()
    cases.add(
        "purge-and-set",
        "a value that is stored with a purge of what is before it: what belongs to the secret stays",
        purge("versions", value=value, history="none"),
        copied | {"versions": "new[7 2002]"},
    )
    cases.add(
        "purge-and-set-conflict",
        "the same for a secret with several values",
        purge("conflict", value=value, history="none"),
        copied | {"conflict": "new[7 2002]"},
    )
    cases.add(
        "purge-and-set-removed",
        "the same for a removed secret, of which nothing is taken over",
        purge("removed", value=value, history="none"),
        copied | {"removed": "new[7]"},
    )


def key_slots(cases):
    key = {"key": OTHER_KEY.hex(), "label": "new"}
    copied = {"fields": f"f[1 2 3 4 {COPIED}]", "removed": f"r[{COPIED}] -[1 9 {COPIED}]"}
    cases.add("add-key", "a key slot more: unknown slots stay", {"add_slot": key}, copied, COPIED, [*SLOTS, "new"])
    cases.add(
        "add-recipient",
        "a recipient more",
        {"add_slot": {"recipient": OTHER_RECIPIENT.hex(), "label": "é"}},
        copied,
        COPIED,
        [*SLOTS, "é"],
    )
    cases.add(
        "replace-passphrase",
        "a passphrase is replaced under the same master key: it leaves a trace",
        {"replace_slot": {"slot": 1, **key}},
        copied,
        COPIED,
    )
    cases.add(
        "replace-recipient",
        "a recipient is replaced under the same master key",
        {"replace_slot": {"slot": 2, **key}},
        copied,
        COPIED,
    )
    cases.add(
        "rekey",
        "another master key: unknown slots are dropped, and former key slots are no traces any more",
        {"rekey": {"without": [3, 4]}},
        copied,
        COPIED,
        ["ci", "laptop", "recipient"],
    )
    cases.add(
        "rekey-without-recipient",
        "another master key without a recipient, who becomes a former key slot",
        {"rekey": {"without": [2, 3, 4]}},
        copied,
        COPIED,
        ["ci", "laptop"],
    )
    cases.add(
        "rekey-without-passphrase",
        "another master key without a passphrase",
        {"rekey": {"without": [1, 3, 4]}},
        copied,
        COPIED,
        ["ci", "recipient"],
    )


def refusals(cases):
    for name, operation in (("set", new("one")), ("rewrite", {"rewrite": {}})):
        vector = "ok-read-only-compatible-1"
        cases.add(f"{name}-read-only", "an unknown read-only-compatible bit", operation, vector=vector, outcome=f.READ_ONLY)
        vector = "ok-highest-sequence"
        cases.add(f"{name}-highest-sequence", "no sequence is left", operation, vector=vector, outcome=f.LIMIT_REACHED)
    vector, outcome = "fields-critical-first-put", f.UNSUPPORTED_VERSION
    cases.add("set-critical", "a value after a record of a later program", new("probe"), vector=vector, outcome=outcome)
    for vector, comment, outcome in (
        ("fields-critical-first-put", "a record of a later program", f.UNSUPPORTED_VERSION),
        ("fields-critical-first-remove-in-base", "a removal of a later program", f.UNSUPPORTED_VERSION),
        ("frame-damaged-value", "a damaged value", f.TAMPERED),
        ("replaced-value-in-base", "a damaged earlier version, which counts", f.TAMPERED),
        ("index-recent-damaged-tag", "damaged recent changes", f.TAMPERED),
        ("leases-reserved", "a wrong page of leases", f.TAMPERED),
    ):
        cases.add(f"rewrite-{vector}", comment, {"rewrite": {}}, vector=vector, outcome=outcome)
    cases.add(
        "rekey-lineage-damaged",
        "a damaged lineage, which a rekey makes longer",
        {"rekey": {"without": []}},
        vector="lineage-damaged",
        outcome=f.TAMPERED,
    )
    vector = "ok-last-sequence-but-one"
    cases.add("set-last-sequence", "one sequence is left", new("one"), {"one": "new[]"}, vector=vector)
    cases.add(
        "rewrite-without-fields",
        "a rewrite of a vault whose root has no fields: the limit is 0 versions, since sequence 1",
        {"rewrite": {}},
        vector="ok-created",
    )
    cases.add(
        "rekey-lineage-64",
        "another master key for a vault that had 64 others: the oldest of these is dropped",
        {"rekey": {"without": []}},
        vector="ok-lineage-64",
    )
    cases.add(
        "rekey-traces",
        "another master key for a vault with traces of former key slots, which are none any more",
        {"rekey": {"without": []}},
        vector="ok-former-slots-traces",
    )
