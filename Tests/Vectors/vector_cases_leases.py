"""The page of leases."""

import vault_format as f
from vector_bases import noise
from vector_suite import TAMPERED, each, flip, number, patch

# Offsets in the page.
COUNTER, COUNT, FIRST = 0, 8, 16
SIZE = 40
END = 1_735_689_615_000


def lease(number):
    """The leases with ascending numbers have ascending ids."""
    return {"lookup_id": f"{number:032x}", "taking": noise(16, f"taking {number}").hex(), "end": END + number}


def leases(*numbers, counter=7):
    return lambda d: d.update(leases={"counter": counter, "held": [lease(one) for one in numbers]})


def at(number):
    return FIRST + SIZE * number


def add(suite):
    """The page of other vectors is zeros."""
    for name, comment, change in (
        ("none", "leases: none, and there were some", leases()),
        ("one", "leases: one", leases(1)),
        ("two", "leases: two", leases(1, 2)),
        ("full", "leases: as many as there can be", leases(*range(100))),
        ("end-zero", "leases: one whose end is 0", lambda d: d.update(leases={"counter": 1, "held": [lease(1) | {"end": 0}]})),
        ("largest", "leases: the largest counter and end", lambda d: d.update(
            leases={"counter": f.U64_LIMIT - 1, "held": [lease(1) | {"end": f.U64_LIMIT - 1}]})),
    ):
        suite.resealed(f"ok-leases-{name}", comment, "small", f.OK, change=change)
    suite.resealed("ok-leases-created", "leases in a vault without secrets", "created", f.OK, change=leases(3, counter=1))
    swapped = lambda page: page[: at(0)] + page[at(1) : at(2)] + page[at(0) : at(1)] + page[at(2) :]
    for name, comment, numbers, fault in (
        ("unsorted", "two in the wrong order", (1, 2), swapped),
        ("twice", "two of one secret", (1, 2), number(at(1) + 15, "B", 1)),
        ("unsorted-last", "the last two in the wrong order", range(100), number(at(99) + 15, "B", 97)),
        ("101", "one more than there can be", range(100), each(number(COUNT, "Q", 101), patch(at(100), bytes.fromhex(lease(100)["lookup_id"])))),
        ("count-2-62", "a number of 2^62", (1,), number(COUNT, "Q", 1 << 62)),
        ("count-one-more", "a number that is one too high: an id of zeros", (1,), number(COUNT, "Q", 2)),
        ("count-one-less", "a number that is one too low", (1, 2), number(COUNT, "Q", 1)),
        ("counter-2-62", "a counter of 2^62", (1,), number(COUNTER, "Q", 1 << 62)),
        ("end-2-62", "an end of 2^62", (1,), number(at(0) + 32, "Q", 1 << 62)),
        ("reserved", "a reserved byte", (1,), flip(at(1))),
        ("reserved-last", "the last reserved byte", (1,), flip(-1)),
        ("reserved-none", "a reserved byte, without leases", (), flip(FIRST)),
    ):
        suite.resealed(f"leases-{name}", f"leases: {comment}", "small", TAMPERED, {"leases": fault}, change=leases(*numbers))
    for what, offset in (("word", 0), ("header MAC", 13)):
        suite.resealed(
            f"leases-under-another-{what.lower().replace(' ', '-')}",
            f"leases sealed under another {what}",
            "small",
            TAMPERED,
            {"leases associated data": flip(offset)},
            change=leases(1),
        )
    for name, offset in (("first", 0), ("middle", 2000), ("last", -1)):
        suite.flipped(f"leases-zeros-{name}-byte", f"leases: a page of zeros with another {name} byte", "small", TAMPERED, "leases", offset)
    suite.resealed("leases-cut", "leases: a page whose tag is zeros", "small", TAMPERED, change=leases(1),
        after=lambda made: made.file[: sum(made.parts["leases"]) - 16] + bytes(16) + made.file[sum(made.parts["leases"]) :])
    slot = suite.made["small"].file[suite.place("small", "commit slot 1") :][: f.PAGE]
    suite.overwritten("leases-commit-slot", "leases: a copy of a commit slot", "small", TAMPERED, "leases", 0, slot)
