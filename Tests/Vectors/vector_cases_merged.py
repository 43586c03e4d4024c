"""The merges of merges.json: files, and the records that the merge of them must have.

The records of a secret are a text: the values in their order. `-` is a remove. After a value, `!` is *conflict*, `=` is
*twin*, `*` is *keeps nothing* and `+` is *kept nothing*.
"""

import tempfile

import vault_format as f
import vault_records as p
from vector_bases import DAY, NOW, key_slot, noise, put, recipient_slot, remove, unknown_slot
from vector_merges import THEIRS, TIME, UNCHANGED, Files

SECOND = 1000

# Fields of a later version: in a merge, 0x4003 is left out.
LATER_FIELDS = [[0x1001, "01"], [0x2002, "02"], [0x4003, "03"]]


def stored(account, value, seconds, **more):
    time = NOW + seconds * SECOND
    return put(account, value, created=time, modified=time, **more)


def removed(account, seconds, **more):
    return remove(account, time=NOW + seconds * SECOND, **more)


def one(account):
    return {"service": "com.example.app", "account": account}


def common(**more):
    """The file from which most of the others come: a and b, and what only a later version knows."""
    identity = {"master_key": 32, "vault_id": 16, "lookup_key": 32}
    return {
        "seed": "coffer vectors 1: merges: common",
        "slots": [key_slot()],
        "base": {"sequence": 1},
        "tail": [[stored("a", "0", 0)], [stored("b", "0", 1, fields=LATER_FIELDS)]],
        "history": {"versions": 10, "days": 0},
        "root_fields": [[0x1001, "01"], [0x4003, "03"]],
        "compatible": 2,
        **{name: noise(size, f"merges: {name}").hex() for name, size in identity.items()},
        **more,
    }


def described(name, items, sequence, recent, **more):
    """A file whose records and recent changes are given. The tag of a recent change is that of its number."""
    base = {"items": items, "sequence": sequence, "recent": [[number, tag(number)] for number in recent]}
    return common(**{"seed": f"coffer vectors 1: merges: {name}", "base": base, "tail": [], **more})


def tag(number, of="a state"):
    return noise(16, f"merges: {of} {number}").hex()


def item(account, value, seconds, sequence, **more):
    return stored(account, value, seconds, sequence=sequence, **more)["put"]


def origin(number, state):
    return [[p.ORIGIN, p.PAIR.pack(number, bytes.fromhex(state)).hex()]]


def made():
    """The files and the merges of merges.json."""
    with tempfile.TemporaryDirectory() as folder:
        files = Files(folder, "common")
        add(files)
    return files


def add(files):
    files.describe("common", common())
    others(files)
    changes(files)
    erasures(files)
    several(files)
    limits(files)
    key_slots(files)
    floors(files)
    commits(files)
    taken(files)
    results(files)


def changes(files):
    files.commit("a is 1", "common", stored("a", "1", 10))
    files.commit("a is 2, later", "common", stored("a", "2", 20))
    files.commit("a is 2, at the time of 1", "common", stored("a", "2", 10))
    files.commit("a is 1, later", "common", stored("a", "1", 20))
    files.commit("a is 3, as the second change", "common", stored("b", "1", 10), stored("a", "3", 10))
    files.commit("a is 4, as the second change", "common", stored("b", "1", 10), stored("a", "4", 10))
    files.commit("a is removed", "common", removed("a", 15))
    files.commit("a is removed later", "common", removed("a", 25))
    files.commit("b is 1", "common", stored("b", "1", 11))
    files.commit("b is 2 with a label", "common", stored("b", "2", 12, label="new", expires=NOW))
    files.commit("c is 1", "common", stored("c", "1", 10))
    files.commit("a is 1, then removed", "a is 1", removed("a", 30))
    files.commit("a is 2, then removed", "a is 2, later", removed("a", 31))
    files.commit("a is 1, then 3", "a is 1", stored("a", "3", 5))
    files.rewrite("rewritten without versions", "a is 1, then 3", history={"versions": 0, "days": 0})
    files.commit("b is 1 after a is 1, then 3", "a is 1, then 3", stored("b", "1", 40))
    case = files.case
    case("two secrets", "each side stores another secret", "a is 1", "b is 1", {"a": "0 1", "b": "0 1"})
    case("new secret", "theirs stores a secret that ours never had", "a is 1", "c is 1", {"a": "0 1", "c": "1"})
    case("metadata", "the value comes with its metadata", "a is 1", "b is 2 with a label", {"b": "0 2"})
    case("put and put", "of two values the later one is present", "a is 1", "a is 2, later", {"a": "0 1! 2"})
    case("put and put, back", "the other direction has the same value", "a is 2, later", "a is 1", {"a": "0 1! 2"})
    case(
        "times stand still", "two values of one time and one sequence: the higher tag of the birth decides",
        "a is 1", "a is 2, at the time of 1", {"a": "0 2! 1"},
    )  # fmt: skip
    case(
        "times stand still, back", "the other direction", "a is 2, at the time of 1", "a is 1", {"a": "0 2! 1"},
    )  # fmt: skip
    case(
        "higher first sequence", "of two values of one time the one with the higher first sequence is present",
        "a is 3, as the second change", "a is 1", {"a": "0 1! 3", "b": "0 1"},
    )  # fmt: skip
    case(
        "higher first sequence, back", "the other direction", "a is 1", "a is 4, as the second change", {"a": "0 1! 4"},
    )  # fmt: skip
    case("equal values", "both sides stored one value", "a is 1", "a is 1, later", {"a": "0 1= 1"})
    case("put and remove", "a put comes before a later remove", "a is 1", "a is removed", {"a": "0 - 1"})
    case("remove and put", "the other direction", "a is removed", "a is 1", {"a": "0 - 1"})
    case("removed by theirs", "theirs removed what ours has", "b is 1", "a is removed", {"a": "0 -", "b": "0 1"})
    case(
        "remove and remove", "one remove of two stays: the other one would not follow a put",
        "a is removed", "a is removed later", {"a": "0 -"},
    )  # fmt: skip
    case(
        "stored and removed twice", "the news of ours stand before the record that precedes the newest remove",
        "a is 1, then removed", "a is 2, then removed", {"a": "0 1 - 2 -"},
    )  # fmt: skip
    case("older time", "the newest record of a side counts, not the latest", "c is 1", "a is 1, then 3", {"a": "0 1 3"})
    case(
        "older value first", "the newest record was not stored last by the clock: the other side's is later",
        "a is 1, then 3", "a is 2, later", {"a": "0 1 3! 2"},
    )  # fmt: skip
    case(
        "dropped versions", "what a history limit dropped on one side stays dropped, and the limit holds for both",
        "b is 1 after a is 1, then 3", "rewritten without versions", {"a": "3", "b": "1"},
    )  # fmt: skip


def erasures(files):
    erase = {"changes": [removed("a", 30, keeps_nothing=True)], "purge": [one("a")]}
    files.rewrite("a is erased", "common", **erase)
    files.rewrite("a is removed, then erased", "a is removed", purge=[one("a")])
    files.commit("a is removed, b is 1", "a is removed", stored("b", "1", 40))
    files.commit("a keeps nothing", "common", stored("a", "1", 10, keeps_nothing=True))
    files.commit("a keeps nothing, later", "common", stored("a", "2", 20, keeps_nothing=True))
    files.merge("both keep nothing", "a keeps nothing", "a keeps nothing, later")
    files.commit("both keep nothing, resolved", "both keep nothing", stored("a", "3", 50))
    files.commit("a keeps nothing, later, b is 1", "a keeps nothing, later", stored("b", "1", 51))
    files.commit("a keeps nothing, then 2", "a keeps nothing", stored("a", "2", 30, keeps_nothing=False))
    case = files.case
    case("erased by theirs", "theirs erased what ours has: a program names it", "b is 1", "a is erased", {"a": ""})
    case("erased by ours", "what ours erased does not come back", "a is erased", "b is 1", {"a": "", "b": "0 1"})
    case("erasure and put", "what the eraser did not see stays, alone", "a is 1", "a is erased", {"a": "1"})
    case("put and erasure", "the other direction", "a is erased", "a is 1", {"a": "1"})
    case(
        "erasure and removed later", "a remove that the eraser did not see follows no put", "a is removed",
        "a is erased", {"a": ""},
    )  # fmt: skip
    case(
        "erasure of a removed secret", "its removal and its versions are gone", "a is removed, b is 1",
        "a is removed, then erased", {"a": "", "b": "0 1"},
    )  # fmt: skip
    case("keeps nothing", "only the newest value counts", "a keeps nothing", "b is 1", {"a": "1*", "b": "0 1"})
    case(
        "keeps nothing, and a version", "a value that keeps nothing has become a version", "b is 1",
        "a keeps nothing, then 2", {"a": "1* 2"},
    )  # fmt: skip
    case(
        "keeps nothing and put", "the mark becomes kept nothing beside news", "a keeps nothing", "a is 2, later",
        {"a": "1!+ 2"},
    )  # fmt: skip
    case(
        "keeps nothing twice", "both marks become kept nothing", "a keeps nothing", "a keeps nothing, later",
        {"a": "1!+ 2+"},
    )  # fmt: skip
    case(
        "keeps nothing, resolved", "a value stored on both keeps nothing again, and theirs, which it knew, is gone",
        "both keep nothing, resolved", "a keeps nothing, later, b is 1", {"a": "3*", "b": "0 1"},
    )  # fmt: skip


def several(files):
    """Merges of merges."""
    files.merge("merge of 1 and 2", "a is 1", "a is 2, later")
    files.merge("merge of 2 and 1", "a is 2, later", "a is 1")
    files.merge("merge of 1 and a new secret", "a is 1", "c is 1")
    files.commit("resolved", "merge of 1 and 2", stored("a", "4", 60))
    files.rewrite("merge of 1 and 2, erased", "merge of 1 and 2", changes=[removed("a", 63, keeps_nothing=True)], purge=[one("a")])
    files.commit("merge of 1 and 2, b is 1", "merge of 1 and 2", stored("b", "1", 64))
    files.commit("b is 2 after a is 1", "a is 1", stored("b", "2", 61))
    files.commit("b is 2 after the other merge", "merge of 2 and 1", stored("b", "2", 61))
    files.commit("a is 5 after the other merge", "merge of 2 and 1", stored("a", "5", 62))
    case = files.case
    case("merge of merges", "the same merge, made twice", "merge of 1 and 2", "merge of 2 and 1", {"a": "0 1! 2"})
    case(
        "merge of merges, one goes on", "the births tell that both have the same changes", "merge of 1 and 2",
        "b is 2 after the other merge", {"a": "0 1! 2", "b": "0 2"},
    )  # fmt: skip
    case(
        "three copies", "a merge with a third copy: one value is in conflict, and one is a twin", "merge of 1 and 2",
        "a keeps nothing, later", {"a": "1! 2= 2+"},
    )  # fmt: skip
    case(
        "erased merge", "the other merge of the same files has only what the eraser knew by its births",
        "merge of 1 and 2, erased", "b is 2 after the other merge", {"a": "", "b": "0 2"},
    )  # fmt: skip
    case(
        "resolved conflict", "a value that was stored on both has replaced them", "resolved", "b is 2 after a is 1",
        {"a": "0 1 2 4", "b": "0 2"},
    )  # fmt: skip
    case(
        "resolved twice", "both merges were resolved, each with another value", "resolved",
        "a is 5 after the other merge", {"a": "0 1 2 4! 5"},
    )  # fmt: skip
    case(
        "goes on after a merge", "theirs goes on after ours merged it, and ours has a new secret besides",
        "merge of 1 and a new secret", "b is 2 after a is 1", {"a": "0 1", "b": "0 2", "c": "1"},
    )  # fmt: skip


def limits(files):
    for name, size in (("5", (5, 0)), ("7", (7, 0)), ("7, 30 days", (7, 30))):
        files.rewrite(f"limit {name}", "common", history=dict(zip(("versions", "days"), size)))
    files.rewrite("limit 7 again", "common", history={"versions": 7, "days": 0})
    files.rewrite("limit 5 after 7", "limit 7", history={"versions": 5, "days": 0})
    files.commit("limit 7, b is 1", "limit 7", stored("b", "1", 70))
    files.merge("limits 5 and 7", "limit 5", "limit 7")
    files.commit("limit 5, b is 1", "limit 5", stored("b", "1", 70))
    for name, size in (("6", (6, 2)), ("8", (8, 3))):
        history = {"versions": size[0], "days": 0, "sequence": size[1]}
        files.describe(f"known limit {name}", described(f"limit {name}", [item("a", name, 0, 5)], 9, [3, 8], history=history))
    files.rewrite("one day", "common", history={"versions": 10, "days": 1}, now=NOW)
    late = [stored("a", str(days), days * 86_400) for days in (0, 3, 4)]
    files.commit("one day, and four days pass", "one day", *late)
    files.commit("one day, b is 1", "one day", stored("b", "1", 80))
    case = files.case
    case("limit of theirs", "only theirs changed the limit", "b is 1", "limit 5", {"b": "0 1"}, limit=(5, 0))
    case("limit of ours", "only ours changed the limit", "limit 5", "b is 1", {"b": "0 1"}, limit=(5, 0))
    case("limits of both", "of two changed limits the one with more versions", "limit 5", "limit 7", {}, limit=(7, 0))
    case("limits with days", "0 days are the most", "limit 7, 30 days", "limit 7", {}, limit=(7, 0))
    case("equal limits", "of equal ones that of ours, with its birth", "limit 7", "limit 7 again", {}, limit=(7, 0))
    case(
        "limit that knew the other", "a smaller limit that replaced the larger one", "limit 5 after 7",
        "limit 7, b is 1", {"b": "0 1"}, limit=(5, 0),
    )  # fmt: skip
    case(
        "limit of a merge", "the merge knew the limit of theirs", "limits 5 and 7", "limit 5, b is 1", {"b": "0 1"},
        limit=(7, 0),
    )  # fmt: skip
    case(
        "limits that both know", "both are not above the sequence at which the files parted: the smaller one",
        "known limit 8", "known limit 6", {}, limit=(6, 0),
    )  # fmt: skip
    case(
        "ages", "the clock of the merge and one side are days ahead: ages are judged by the other side",
        "one day, and four days pass", "one day, b is 1", {"a": "0 0 3 4", "b": "0 1"}, time=NOW + 9 * DAY,
    )  # fmt: skip


def key_slots(files):
    second, third = key_slot("second", bytes([2]) * 32), key_slot("third", bytes([3]) * 32)
    files.rewrite("two slots", "common", add_slots=[second, recipient_slot(label="of ours")])
    files.rewrite("third slot", "common", add_slots=[third])
    files.rewrite("recipient", "common", add_slots=[recipient_slot(label="one")])
    files.rewrite("recipient again", "common", add_slots=[recipient_slot(label="another")])
    files.rewrite("unknown slot", "common", add_slots=[unknown_slot(9, 1, b"later"), unknown_slot(9, 1, b"ours")])
    files.rewrite("unknown slot again", "common", add_slots=[unknown_slot(9, 1, b"later"), unknown_slot(9, 2, b"theirs")])
    ids = files.slots("two slots")
    files.rewrite("second slot removed", "two slots", remove_slots=[ids["second"]], now=TIME + SECOND)
    files.rewrite("recipient removed", "two slots", remove_slots=[ids["of ours"]])
    files.rewrite("second slot replaced", "two slots", remove_slots=[ids["second"]], add_slots=[third])
    files.commit("two slots, b is 1", "two slots", stored("b", "1", 90))
    files.commit("two slots, a is 1", "two slots", stored("a", "1", 91))
    case = files.case
    case("slots added", "both sides added slots", "two slots", "third slot", {}, slots=["ci", "second", "of ours", "third"])
    case(
        "slot removed by theirs", "theirs lists the slot as removed", "two slots, b is 1", "second slot removed",
        {"b": "0 1"}, slots=["ci", "of ours"], former=["second"],
    )  # fmt: skip
    case(
        "slot removed by ours", "the slot that ours removed does not come back", "second slot removed",
        "two slots, b is 1", {"b": "0 1"}, slots=["ci", "of ours"], former=["second"],
    )  # fmt: skip
    case(
        "slots removed by both", "each side removed another slot", "second slot removed", "recipient removed", {},
        slots=["ci"], former=["of ours", "second"],
    )  # fmt: skip
    case(
        "slot replaced", "theirs has another slot in place of one of ours", "two slots, b is 1", "second slot replaced",
        {"b": "0 1"}, slots=["ci", "of ours", "third"], former=["second"],
    )  # fmt: skip
    case(
        "slot replaced and removed", "a slot that both removed at two times is listed twice",
        "second slot replaced", "second slot removed", {}, slots=["ci", "of ours", "third"], former=["second", "second"],
    )  # fmt: skip
    case(
        "one recipient", "of two slots of one recipient the one with the lower id stays, and the other leaves a trace",
        "recipient", "recipient again", {}, slots=["ci", "another"], former=["one"],
    )  # fmt: skip
    case(
        "one recipient, back", "the other direction keeps the same slot", "recipient again", "recipient", {},
        slots=["ci", "another"], former=["one"],
    )  # fmt: skip
    case(
        "unknown slots", "unknown slots are joined by their bytes", "unknown slot", "unknown slot again", {}, slots=["ci", "later", "ours", "theirs"]
    )
    case(
        "older slots", "a commit that ours has is taken again, and none of its slots is added", "two slots, b is 1",
        "two slots", {"b": "0 1"}, ancestor="common", slots=["ci", "second", "of ours"],
    )  # fmt: skip


def floors(files):
    """Files that do not list every change, so that the tag of a birth is not known."""
    files.describe("floor 4", described("floor 4", [item("a", "0", 0, 5), item("b", "0", 0, 6)], 20, [4, 5, 6, 10, 12]))
    high = [item("a", "0", 0, 5), item("b", "1", 9, 18, fields=origin(13, tag(13)))]
    files.describe("floor 10", described("floor 10", high, 20, [10, 12, 15], seed="coffer vectors 1: merges: floor 10"))
    lower = [item("a", "0", 0, 5), item("a", "1", 8, 17), item("b", "0", 0, 6)]
    lower.append(item("c", "dropped", 0, 11, fields=origin(3, tag(3))))
    files.describe("floor 9", described("floor 9", lower, 20, [9, 10, 12, 17]))
    again = [item("c", "erased", 0, 16, fields=origin(3, tag(3))), item("b", "0", 0, 6)]
    files.describe("moved above", described("moved above", again, 20, [10, 12, 16]))
    moved = [item("a", "0", 0, 19, fields=origin(5, tag(5))), item("b", "0", 0, 6)]
    files.describe("moved", described("moved", moved, 20, [4, 5, 10, 12, 19]))
    before = [item("c", "0", 0, 7), removed("c", 0, sequence=8)]
    unknown = [item("a", "0", 0, 5), item("a", "9", 0, 16), item("b", "0", 0, 6), *before]
    files.describe("floor 18", described("floor 18", [*unknown, item("c", "1", 0, 9)], 20, [18]))
    files.describe("floor 18 too", described("floor 18 too", [*unknown[:2], item("b", "7", 3, 19), *before, item("c", "2", 0, 10)], 21, [18, 20]))
    case = files.case
    case(
        "floor", "the tag of a birth is known to one side only: first sequences and times are equal", "floor 4",
        "floor 10", {"a": "0", "b": "1"}, floor=10,
    )  # fmt: skip
    case(
        "below the floor of both", "neither side knows the tag, and one has stored a value since", "floor 9", "floor 10",
        {"a": "0 1", "b": "1", "c": ""}, floor=10,
    )  # fmt: skip
    case(
        "moved by a merge", "the first sequence of a record that a merge moved is in its origin", "floor 10", "moved",
        {"a": "0", "b": "1"}, floor=10,
    )  # fmt: skip
    case(
        "comes back", "theirs dropped it below its floor, and ours has moved it above: it is taken for news",
        "moved above", "floor 10", {"c": "erased"}, floor=10,
    )  # fmt: skip
    case(
        "below every list", "both know every record: none is above the sequence at which they parted", "floor 18",
        "floor 18 too", {"a": "0 9", "b": "7", "c": "0 -"}, floor=18,
    )  # fmt: skip


def commits(files):
    """What one commit did is taken or undone."""
    files.commit("a is 1, b is 3", "a is 1", stored("b", "3", 100))
    files.commit("a is 1, a is 6", "a is 1", stored("a", "6", 101))
    files.commit("a is 1, b is removed", "a is 1", removed("b", 102))
    files.rewrite("a is 1, erased", "a is 1", changes=[removed("a", 103, keeps_nothing=True)], purge=[one("a")])
    files.rewrite("a is 1, rewritten", "a is 1")
    files.commit("c is 1, c is 2", "c is 1", stored("c", "2", 105))
    files.commit("a is 1, c is 3", "a is 1", stored("c", "3", 106, label="of a commit"))
    files.commit("a is removed, c is 3", "a is removed", stored("c", "3", 107))
    files.commit("a is erased, b is 1", "a is erased", stored("b", "1", 108))
    files.commit("c is 1, b is 1", "c is 1", stored("b", "1", 109))
    files.rewrite("a is 1, limit 5", "a is 1", history={"versions": 5, "days": 0})
    files.commit("a is 1, limit 5, c is 3", "a is 1, limit 5", stored("c", "3", 110))
    files.add("no vault", b"no vault at all")
    files.add("cut", files.made["a is 1"][:-1])
    files.add("flipped", files.made["a is 1"][:-1] + bytes([files.made["a is 1"][-1] ^ 1]))
    pick = lambda *more, ancestor="a is 1", **told: files.case(*more, ancestor=ancestor, **told)
    undo = lambda *more, **told: files.case(*more, undoes=True, **told)
    pick(
        "pick", "what one commit stored: what its branch had before is left out", "c is 1", "a is 1, b is 3",
        {"a": "0", "b": "0 3", "c": "1"}, left_out=["a"],
    )  # fmt: skip
    pick(
        "pick of a second value", "the value before it is left out, and the new one is present", "c is 1",
        "a is 1, a is 6", {"a": "0 6", "c": "1"}, left_out=["a"],
    )  # fmt: skip
    pick("pick against a value", "ours stored another value", "a is 2, later", "a is 1, a is 6", {"a": "0 2! 6"}, left_out=["a"])
    pick("pick of a removal", "a secret that ours has still", "c is 1", "a is 1, b is removed", {"a": "0", "b": "0 -"}, left_out=["a"])
    pick(
        "pick of an erasure", "theirs erased it, and ours has only what theirs knew", "c is 1", "a is erased",
        {"a": "", "c": "1"}, ancestor="common",
    )  # fmt: skip
    pick(
        "pick of an erasure of more", "the commit erased a value that ours never had: what it knew is gone", "c is 1",
        "a is 1, erased", {"a": "", "c": "1"},
    )  # fmt: skip
    pick("pick of a rewrite", "the commit did nothing to any secret", "c is 1", "a is 1, rewritten", {"a": "0", "c": "1"}, left_out=["a"])
    pick(
        "pick of a limit", "the commit changed the limit: it is taken, with its birth", "c is 1", "a is 1, limit 5",
        {"a": "0", "c": "1"}, left_out=["a"], limit=(5, 0),
    )  # fmt: skip
    pick(
        "pick after a limit", "the commit did not change the limit of its branch", "b is 1", "a is 1, limit 5, c is 3",
        {"a": "0", "b": "0 1", "c": "3"}, ancestor="a is 1, limit 5", left_out=["a"], limit=(10, 0),
    )  # fmt: skip
    pick(
        "pick with a known ancestor", "both show the state of the ancestor: the merge lists the changes of both", "a is 1, then 3",
        "a is 1, b is 3", {"a": "0 1 3", "b": "0 3"},
    )  # fmt: skip
    pick(
        "pick from the past", "ours shows the state of theirs, and has undone nothing", "a is 1, then 3", "a is 1",
        {"a": "0 1 3"}, ancestor="common",
    )  # fmt: skip
    pick(
        "pick after an erasure", "the commit did nothing to a secret that its branch has erased", "c is 1", "a is erased, b is 1",
        {"a": "0", "b": "0 1", "c": "1"}, ancestor="a is erased", left_out=["a"],
    )  # fmt: skip
    pick(
        "pick of what does not come from the ancestor", "theirs does not show the state of the ancestor", "a is 1, then 3",
        "c is 1", {"a": "0 1 3", "c": "1"},
    )  # fmt: skip
    undo(
        "undo of a resolution", "the newest of the two values that theirs had, without its origin", "resolved", "merge of 1 and 2",
        {"a": "0 1 2 4 2"}, ancestor="resolved",
    )  # fmt: skip
    undo(
        "undo of a merge", "not all heads come from the commit: nothing is done", "merge of 1 and 2, b is 1", "a is 1",
        {"a": "0 1! 2", "b": "0 1"}, ancestor="merge of 1 and 2",
    )  # fmt: skip
    undo(
        "undo towards a later file", "theirs shows the state of the ancestor, and the merge is no successor of theirs all the same",
        "a is 1, b is 3", "a is 1, then 3", {"a": "0 1 3", "b": "0 3"}, ancestor="a is 1",
    )  # fmt: skip
    undo(
        "undo beside a limit", "theirs has a limit that ours does not know: that of ours stays", "c is 1, b is 1", "limit 7",
        {"c": "1 -"}, ancestor="c is 1", limit=(10, 0),
    )  # fmt: skip
    undo("undo of a put", "the value before it", "a is 1, c is 3", "common", {"a": "0 1 0", "c": "3"}, ancestor="a is 1")
    undo("undo of a first put", "there was no value before it: a remove", "c is 1, b is 1", "common", {"b": "0 1", "c": "1 -"}, ancestor="c is 1")
    undo("undo of a second put", "of a value with a version", "c is 1, c is 2", "c is 1", {"c": "1 2 1"}, ancestor="c is 1, c is 2")
    undo("undo of a removal", "the value that was removed", "a is removed, c is 3", "common", {"a": "0 - 0", "c": "3"}, ancestor="a is removed")
    undo("undo of an erasure", "ours has no record of it", "a is erased, b is 1", "common", {"a": "0", "b": "0 1"}, ancestor="a is erased")
    undo("undo of what was changed since", "another value was stored since: nothing is done", "a is 1, then 3", "common", {"a": "0 1 3"}, ancestor="a is 1")
    undo(
        "undo of a removed value", "it was removed since: nothing is done", "a is 1, then removed", "common",
        {"a": "0 1 -"}, ancestor="a is 1",
    )  # fmt: skip
    undo(
        "undo of one side", "the value stands beside another one, which did not come from the commit: nothing is done",
        "merge of 1 and 2", "common", {"a": "0 1! 2"}, ancestor="a is 1",
    )  # fmt: skip
    undo(
        "undo of a put that keeps nothing", "the value before it, with what ours has", "a keeps nothing, later, b is 1",
        "common", {"a": "2* 0", "b": "0 1"}, ancestor="a keeps nothing, later",
    )  # fmt: skip
    undo(
        "undo to a value that keeps nothing", "it gets kept nothing", "a keeps nothing, then 2", "a keeps nothing",
        {"a": "1* 2 1+"}, ancestor="a keeps nothing, then 2",
    )  # fmt: skip
    undo(
        "undo of a value with fields", "the value gets its fields and its time of creation back", "b is 1", "common",
        {"b": "0 1 0"}, ancestor="b is 1",
    )  # fmt: skip
    undo("undo of a limit", "the limit of ours stays", "limit 5, b is 1", "common", {"b": "0 1"}, ancestor="limit 5", limit=(5, 0))
    undo("undo of what ours does not have", "ours has only what theirs has", "c is 1", "common", {"a": "0", "c": "1"}, ancestor="a is 1")
    unusable = {"no vault": f.NOT_A_VAULT, "cut": f.TAMPERED, "flipped": f.TAMPERED}
    for ancestor, outcome in (unusable | {"another vault": f.ANOTHER_VAULT, "another key": f.ANOTHER_KEY}).items():
        for name, undoes in ((f"ancestor: {ancestor}", False), (f"undo, ancestor: {ancestor}", True)):
            files.case(
                name, "an ancestor that cannot be used: neither file is merged", "c is 1", "a is 1, b is 3", {},
                ancestor=ancestor, undoes=undoes, outcome=outcome,
            )  # fmt: skip
    files.commit("a is removed, c is 1", "a is removed", stored("c", "1", 40))
    files.rewrite("a is removed, then erased", "a is removed", purge=[one("a")])
    pick(
        "taking a purge of what is removed", "what could be restored is erased", "a is removed, c is 1",
        "a is removed, then erased", {"c": "1"}, ancestor="a is removed", erased=["a"],
    )  # fmt: skip
    files.rewrite("a is 1, the versions erased", "a is 1", purge=[one("a")])
    pick(
        "taking a purge of earlier versions", "only what the commit has dropped is dropped", "b is 1 after a is 1, then 3",
        "a is 1, the versions erased", {"a": "1 3", "b": "0 1"}, ancestor="a is 1",
    )  # fmt: skip
    pick(
        "taking a purge of a value that ours has still", "no present value goes with a commit that did not remove it",
        "c is 1", "rewritten without versions", {"a": "0", "c": "1"}, ancestor="a is 1, then 3", left_out=["a"],
    )  # fmt: skip
    pick(
        "a removal before the commit", "the ancestor has removed what ours has", "a is 1", "a is removed, c is 1",
        {"a": "0 1", "c": "1"}, ancestor="a is removed", left_out=[],
    )  # fmt: skip
    pick(
        "a removal before the commit, of what ours has", "the ancestor has removed what ours has", "b is 1",
        "a is removed, c is 1", {"a": "0", "b": "0 1", "c": "1"}, ancestor="a is removed", left_out=["a"],
    )  # fmt: skip
    files.commit("rewritten, then 5", "rewritten without versions", stored("a", "5", 50))
    pick(
        "values that are all left out", "a value of ours that theirs replaced stays, because what replaced it is left out",
        "a is 1", "rewritten without versions", {"a": "0 1"}, ancestor="rewritten, then 5", left_out=["a"],
    )  # fmt: skip
    files.merge("merge of 1 and 2, later", "a is 1", "a is 2, later")
    files.commit("a is 7", "common", stored("a", "7", 60))
    files.merge("1, 2 and 7", "a is 7", "merge of 1 and 2, later")
    pick(
        "a conflict beside what is left out", "its values stay in conflict", "merge of 1 and 2, later", "1, 2 and 7",
        {"a": "0 1! 2"}, ancestor="a is 7", left_out=["a"],
    )  # fmt: skip


def taken(files):
    """Changes that were taken without the others of their branch."""
    files.merge("b is 3 was taken", "c is 1", "a is 1, b is 3", "a is 1")
    files.commit("b is 3 was taken and removed", "b is 3 was taken", removed("b", 120))
    erase = {"changes": [removed("b", 122, keeps_nothing=True)], "purge": [one("b")]}
    files.rewrite("b is 3 was taken and erased", "b is 3 was taken", **erase)
    files.commit("b is 3 was taken, then 4", "b is 3 was taken", stored("b", "4", 121))
    files.commit("a is 1, b is 3, then 8", "a is 1, b is 3", stored("b", "8", 50))
    for count, numbers in (("1,500", range(1, 3001, 2)), ("800", range(2, 1602, 2))):
        births = b"".join(p.PAIR.pack(one, bytes.fromhex(tag(one, "taken"))) for one in numbers)
        fields = {"root_fields": [[p.TAKEN, births.hex()]], "tail": [[stored("a", str(len(numbers)), len(numbers))]]}
        files.describe(f"{count} taken", described(f"{count} taken", [], 9, [3, 8], **fields))
    case = files.case
    case(
        "taken and removed", "what was taken and removed does not come back with its branch", "b is 3 was taken and removed",
        "a is 1, b is 3", {"a": "0 1", "b": "0 3 -", "c": "1"},
    )  # fmt: skip
    case(
        "taken and erased", "only the list of taken changes says that ours knew it", "b is 3 was taken and erased",
        "a is 1, b is 3", {"a": "0 1", "b": "", "c": "1"},
    )  # fmt: skip
    case(
        "taken twice", "another commit of the branch is taken: both changes are listed", "b is 3 was taken",
        "a is 1, a is 6", {"a": "0 6", "b": "0 3", "c": "1"}, ancestor="a is 1", left_out=["a"],
    )  # fmt: skip
    case(
        "taken and replaced", "a value that replaced what was taken is present alone", "b is 3 was taken, then 4",
        "a is 1, b is 3", {"a": "0 1", "b": "0 3 4", "c": "1"},
    )  # fmt: skip
    case(
        "taken, and the branch goes on", "the branch replaced it, and so did ours", "b is 3 was taken, then 4",
        "a is 1, b is 3, then 8", {"a": "0 1", "b": "0 3 8! 4", "c": "1"},
    )  # fmt: skip
    files.rewrite("b is 3 and d is 4 at once", "common", changes=[stored("b", "3", 70), stored("d", "4", 71)])
    files.rewrite("b is erased again", "b is 3 and d is 4 at once", changes=[removed("b", 72, keeps_nothing=True)], purge=[one("b")])
    files.merge("b of two was taken", "c is 1", "b is 3 and d is 4 at once", "b is erased again")
    case(
        "taken with another of one rewrite", "a change that came with a taken one is not known", "b of two was taken",
        "b is 3 and d is 4 at once", {"b": "0 3", "c": "1", "d": "4"},
    )  # fmt: skip
    case("most taken changes", "of more than 2,048 the lowest go", "1,500 taken", "800 taken", {})


def others(files):
    files.describe("another vault", common(vault_id="00" * 16))
    files.describe("another key", common(master_key="11" * 32))
    files.describe("another beginning", common(seed="coffer vectors 1: merges: another", base={"sequence": 2}))
    read_only = {"read_only_compatible": 1, "seed": "coffer vectors 1: merges: common"}
    files.describe("read-only", common(**read_only))


def results(files):
    case = files.case
    case("nothing", "ours shows the state of theirs", "a is 1, then 3", "a is 1", {}, outcome=UNCHANGED)
    case("same file", "ours is theirs", "a is 1", "a is 1", {}, outcome=UNCHANGED)
    case(
        "merged already", "ours has merged theirs before", "merge of 1 and 2", "a is 2, later", {}, outcome=UNCHANGED
    )
    case("theirs goes on", "theirs shows the state of ours", "a is 1", "a is 1, then 3", {"a": "0 1 3"}, outcome=THEIRS)
    case("theirs has merged", "theirs has merged ours", "a is 1", "merge of 1 and 2", {"a": "0 1! 2"}, outcome=THEIRS)
    case("another vault", "the vault ids differ", "a is 1", "another vault", {}, outcome=f.ANOTHER_VAULT)
    case("another key", "the master keys differ", "a is 1", "another key", {}, outcome=f.ANOTHER_KEY)
    case("no common state", "no state is shown by both files", "a is 1", "another beginning", {}, outcome=f.ROLLED_BACK)
    case("read-only", "theirs has a feature bit of a later version", "a is 1", "read-only", {}, outcome=f.READ_ONLY)
