"""Conflicts, changes that keep nothing, and former key slots."""

import copy

import vault_format as f
import vault_records as p
from vector_bases import BASES, DAY, NOW, former, noise, put, remove
from vector_cases_records import field, held, listed
from vector_suite import TAMPERED, number, patch


def add(suite):
    conflicts(suite)
    marks(suite)
    former_slots(suite)


def described(base, tail, history):
    """The vault `created` with these changes, which all concern `one`, from sequence 1 on."""
    description = copy.deepcopy(BASES["created"][0])
    items = [one.get("put", one) for one in base]
    description.update(base={"items": items, "sequence": len(items) + 1}, tail=[tail], history=history)
    return description


def lost(value, days_ago=3, to=-1, **more):
    """A put that lost to the change at the place `to` of the list."""
    return stored(value, days_ago, conflict=to, **more)


def resolved(changes, in_base):
    """The changes, whose conflicts name sequences. The root has the sequence between base and tail."""
    changes = copy.deepcopy(changes)
    for change in changes:
        one = change.get("put", {})
        for name in ("conflict", "twin"):
            if name in one:
                place = one[name] % len(changes)
                one[name] = place + 1 + (place >= in_base)
    return changes


def stored(value, days_ago=3, **more):
    time = NOW - days_ago * DAY
    return put("one", value, created=NOW - 99 * DAY, modified=time, **more)


def removed(days_ago=3, **more):
    return remove("one", time=NOW - days_ago * DAY, **more)


NONE, ONE, MANY = ({"versions": count, "days": 0} for count in (0, 1, 10))
ONE_DAY = {"versions": 10, "days": 1}


def changed(suite, name, comment, changes, history):
    """A vector with the changes in the base, one with them in the tail, and one with the last change in the tail."""
    for where, at in (("in-base", len(changes)), ("in-tail", 0), ("in-both", len(changes) - 1)):
        right = resolved(changes, at)
        suite.resealed(
            f"{name}-{where}",
            f"{comment}; {where.replace('-', ' ').replace('both', 'the base, and the last change in the tail')}",
            "created",
            f.OK,
            change=lambda d, right=right, at=at: d.update(described(right[:at], right[at:], history)),
        )


def conflicts(suite):
    """Versions that lost to the present value in a merge are kept without a limit."""
    a, b, c = stored("a", 9), stored("b", 6), stored("c", 2)
    for name, comment, changes, history in (
        ("kept", "no versions count, and one lost to the present value", [lost("a"), c], NONE),
        ("kept-too-old", "versions of one day, and an older one lost", [lost("a", 9), b, c], ONE_DAY),
        (
            "kept-after-old",
            "versions of one day, and an older one that lost before old ones",
            [a, lost("x", 8), b, c],
            ONE_DAY,
        ),
        ("not-counted", "one version counts, and one that lost does not use it up", [a, b, lost("x"), c], ONE),
        ("two", "two versions that lost to one value", [lost("a"), lost("x"), c], NONE),
        ("first-and-others", "a version that lost, and versions after it that count", [lost("a"), b, b, c], ONE),
        (
            "stored-since",
            "a value was stored since: it is a version like others",
            [lost("a", to=1), b, c],
            NONE,
        ),
        ("stored-since-counted", "the same, and versions count", [lost("a", to=1), b, c], MANY),
        ("removed-since", "the present value was removed since", [lost("a", to=1), c, removed(1)], NONE),
        ("removed-since-counted", "the same, and versions count", [lost("a", to=1), c, removed(1)], MANY),
        ("itself", "a version that names itself", [lost("a", to=0), c], NONE),
        ("removal", "a conflict that names the removal", [lost("a"), c, removed(1)], NONE),
        ("newest", "the present value lost to itself", [a, lost("c", 2)], NONE),
        ("removed-before", "a version that lost, with a remove after it", [lost("a"), removed(4), c], NONE),
        (
            "forgotten",
            "a version that lost before a value that keeps nothing",
            [lost("a"), stored("c", 2, keeps_nothing=True)],
            MANY,
        ),
        (
            "forgets",
            "a version that lost and keeps nothing: what is before it is gone",
            [a, lost("x", keeps_nothing=True), c],
            MANY,
        ),
        ("twin", "a version with the same value, which no limit drops", [stored("c", 9, twin=-1), c], NONE),
        ("twin-and-conflict", "a version of both kinds", [stored("c", 9, twin=-1), lost("a"), c], NONE),
        ("twin-stored-since", "a value was stored since", [stored("b", 9, twin=1), b, c], NONE),
        ("and-label", "a version that lost, with other fields", [lost("a", label="l", attributes={"n": "v"}), c], NONE),
    ):
        changed(suite, f"ok-conflict-{name}", comment, changes, history)
    for name, sequence in (("one", 1), ("highest", (1 << 62) - 1)):
        suite.resealed(
            f"ok-conflict-sequence-{name}",
            f"a conflict with the sequence {sequence}",
            "created",
            f.OK,
            change=lambda d, sequence=sequence: d.update(
                tail=[[put("one", "1", conflict=sequence), put("one", "2", conflict=sequence)]]
            ),
        )
    suite.resealed(
        "ok-conflict-of-another-secret",
        "a conflict that names the present value of another secret",
        "created",
        f.OK,
        change=lambda d: d.update(tail=[[put("other", "2", conflict=3), put("one", "1"), put("other", "3")]]),
    )


def marks(suite):
    """Changes that keep nothing of what was before them."""
    a, b, c = stored("a", 9), stored("b", 6), stored("c", 2)
    mark = {"keeps_nothing": True}
    for name, comment, changes, history in (
        ("newest", "the present value keeps nothing", [a, b, stored("c", 2, **mark)], MANY),
        ("version", "a version keeps nothing, and is one itself", [a, stored("b", 6, **mark), c], MANY),
        ("first", "the first value keeps nothing", [stored("a", 9, **mark), b, c], MANY),
        ("twice", "two values keep nothing", [a, stored("b", 6, **mark), stored("c", 2, **mark)], MANY),
        (
            "twice-apart",
            "two values keep nothing, with others between and after",
            [stored("a", **mark), b, stored("x", **mark), b, c],
            MANY,
        ),
        ("beyond-limit", "a version keeps nothing, and is beyond the limit", [a, stored("b", 6, **mark), b, c], ONE),
        ("remove", "a remove keeps nothing: no removal is shown", [a, b, removed(1, **mark)], MANY),
        ("remove-before", "a remove of a value that keeps nothing", [a, stored("b", 6, **mark), removed(1)], MANY),
        ("remove-then-put", "a remove keeps nothing, and a value follows", [a, b, removed(3, **mark), c], MANY),
        (
            "remove-then-removed",
            "a remove keeps nothing, and a value and a remove follow",
            [a, removed(4, **mark), c, removed(1)],
            MANY,
        ),
        ("without-history", "a value keeps nothing, and nothing counts anyway", [a, stored("c", 2, **mark)], NONE),
    ):
        changed(suite, f"ok-keeps-nothing-{name}", comment, changes, history)
    kept = [[p.KEPT_NOTHING, ""]]
    changed(suite, "ok-kept-nothing", "a merge brought the value beside others", [a, stored("c", 2, fields=kept)], MANY)
    unknown = [[0x100, "ff"]]
    changed(
        suite,
        "ok-keeps-nothing-and-unknown",
        "a value that keeps nothing, with an unknown field",
        [a, stored("c", 2, fields=unknown, **mark)],
        MANY,
    )


def former_slots(suite):
    """The former key slots in the root, whose sequence is 1."""
    one = p.FormerSlot(noise(16, "slot"), 3, 0, noise(32, "recipient"), NOW, 1, NOW + 1, "label")
    encoded = one.encode()
    trace, sequence, label = 17, 58, 74
    faults = {
        "none": ("a field of no slots", b""),
        "cut": ("the last byte is missing", encoded[:-1]),
        "byte-more": ("a byte after the slots", encoded + b"\0"),
        "74-bytes": ("a slot without a label's length", encoded[:label]),
        "second-cut": ("a second slot that is cut short", encoded + encoded[:40]),
        "label-65": ("a label of 65 bytes", encoded[:label] + b"\x41" + b"l" * 65),
        "label-255": ("a label of 255 bytes", encoded[:label] + b"\xff" + b"l" * 255),
        "label-nul": ("a NUL in the label", patch(-1, b"\0")(encoded)),
        "label-not-utf8": ("a label that is not UTF-8", patch(-1, b"\xff")(encoded)),
        "label-surrogate": ("a surrogate in the label", encoded[:label] + b"\3\xed\xa0\x80"),
        "label-longer": ("a label longer than the rest", number(label, "B", 6)(encoded)),
        "trace-2": ("2 in place of a mark that is 0 or 1", number(trace, "B", 2)(encoded)),
        "trace-255": ("255 in place of a mark that is 0 or 1", number(trace, "B", 255)(encoded)),
        "removed-zero": ("a removal at 0", number(sequence, "Q", 0)(encoded)),
        "removed-after-root": ("a removal after the root", number(sequence, "Q", 2)(encoded)),
        "removed-highest": ("a removal at the highest sequence", number(sequence, "Q", (1 << 62) - 1)(encoded)),
        "removed-2-62": ("a sequence of removal of 2^62", number(sequence, "Q", 1 << 62)(encoded)),
        "removed-most": ("the highest number as a sequence of removal", number(sequence, "Q", (1 << 64) - 1)(encoded)),
        "257": ("257 slots", encoded * 257),
    }
    for name, (comment, data) in faults.items():
        fields = listed(field(p.FORMER_SLOTS, data))
        held(suite, f"former-slots-{name}", f"former key slots: {comment}", TAMPERED, "root", fields)
    twice = listed(field(p.FORMER_SLOTS, encoded), field(p.FORMER_SLOTS, encoded))
    held(suite, "former-slots-twice", "two lists of former key slots", TAMPERED, "root", twice)
    before = listed(field(p.FORMER_SLOTS, encoded), field(p.HISTORY, p.HistoryLimit().encode()))
    held(suite, "former-slots-before-history", "former key slots before the history limit", TAMPERED, "root", before)
    critical = listed(field(p.FORMER_SLOTS, b""), field(0x8003))
    comment = "a wrong list of former key slots, and an unknown critical type: the latter is found first"
    held(suite, "former-slots-none-and-critical", comment, f.UNSUPPORTED_VERSION, "root", critical)
    suite.resealed(
        "former-slots-descend",
        "a removal before the one that is listed before it",
        "small",
        TAMPERED,
        change=lambda d: d.update(former_slots=[former("one", 2), former("two", 1)]),
    )
    for name, comment, found in (
        ("one", "one", [former("one")]),
        ("alike", "one twice", [former("one"), former("one")]),
        ("unknown-type", "one of a type that a later program may write", [former("one", kind=9)]),
        ("label-64", "a label of 64 bytes", [former("l" * 64)]),
        ("label-empty", "an empty label", [former("")]),
        ("recipient-zeros", "a recipient of zeros", [former("one", recipient="00" * 32)]),
        ("traces", "slots that left the master key as it is", [former("one", is_trace=1), former("two", is_trace=1)]),
        ("256", "as many as there can be", [former(f"{number:064}") for number in range(256)]),
    ):
        suite.resealed(
            f"ok-former-slots-{name}",
            f"former key slots: {comment}",
            "created",
            f.OK,
            change=lambda d, found=found: d.update(former_slots=found),
        )
    suite.resealed(
        "ok-former-slots-and-unknown",
        "former key slots, a history limit, a lineage and an unknown field",
        "former-slots",
        f.OK,
        change=lambda d: d.update(lineage=["11" * 32], root_fields=[[0x100, "00"]]),
    )
