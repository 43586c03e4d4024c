"""Commit slots and the parts that they point at."""

import vault_format as f
from vector_bases import put
from vector_suite import TAMPERED, constant, each, flip, number, plus

# Offsets in a state.
SEQUENCE, END, TAIL_TAG, BASE_END, ROOT_LENGTH, RESERVED, ROOT_TAG, ZEROS = 0, 8, 16, 32, 40, 44, 48, 64
CURRENT, OLDER = "commit slot 1 state", "commit slot 0 state"  # in the uncopied vault


def add(suite):
    damaged(suite)
    states(suite)
    absurd_states(suite)
    older_states(suite)
    bounds(suite)
    copies(suite)


def mac_of(made):
    start, length = made.parts["header MAC"]
    return made.file[start : start + length]


def damaged(suite):
    for offset, what in (
        (0, "nonce"),
        (24, "first byte"),
        (2000, "middle"),
        (-17, "last byte"),
        (-16, "tag"),
        (-1, "end of the tag"),
    ):
        name = what.replace(" ", "-")
        suite.flipped(
            f"current-slot-{name}",
            f"the current slot: {what}; the previous state is read",
            "uncopied",
            f.RECOVERED,
            "commit slot 1",
            offset,
            transactions=2,
        )
        suite.flipped(
            f"older-slot-{name}",
            f"the older slot: {what}; the current state is read",
            "uncopied",
            f.RECOVERED,
            "commit slot 0",
            offset,
        )
    for base, index, transactions in (
        ("tail-only", 0, 1),
        ("tail-only", 1, 2),
        ("created", 0, 0),
        ("created", 1, 0),
        ("versions", 0, None),
        ("versions", 1, None),
        ("emptied", 0, None),
    ):
        suite.overwritten(
            f"{base}-slot-{index}-zeros",
            f"commit slot {index} of zeros",
            base,
            f.RECOVERED,
            f"commit slot {index}",
            0,
            bytes(64),
            transactions=transactions,
        )
    made = suite.made["uncopied"]
    start, end = suite.place("uncopied", "commit slot 0"), suite.end("uncopied", "commit slot 1")
    first, second = made.file[start : start + f.PAGE], made.file[start + f.PAGE : end]
    suite.damage(
        "both-slots-damaged",
        "neither commit slot opens",
        "uncopied",
        TAMPERED,
        (start, 1, b"\x5a"),
        (start + f.PAGE, 1, b"\x5a"),
    )
    suite.damage(
        "both-slots-damaged-created",
        "neither commit slot of a new vault opens",
        "created",
        TAMPERED,
        (start, 24, bytes(24)),
        (start + f.PAGE, 24, bytes(24)),
    )
    suite.damage(
        "slots-swapped", "the two commit slots exchanged", "uncopied", TAMPERED, (start, 2 * f.PAGE, second + first)
    )
    suite.damage(
        "slot-0-in-both-places",
        "the older slot's bytes in both places: the previous state is read",
        "uncopied",
        f.RECOVERED,
        (start + f.PAGE, f.PAGE, first),
        transactions=2,
    )
    suite.damage(
        "slot-1-in-both-places",
        "the current slot's bytes in both places",
        "uncopied",
        f.RECOVERED,
        (start, f.PAGE, second),
    )
    suite.damage(
        "slots-of-another-vault",
        "both slots of another vault",
        "created",
        TAMPERED,
        (start, 2 * f.PAGE, suite.made["uncopied"].file[start:end]),
    )
    torn = second[:512] + first[512:]
    suite.damage(
        "slot-torn",
        "a slot of which only one sector of 512 bytes was written: the previous state is read",
        "uncopied",
        f.RECOVERED,
        (start + f.PAGE, f.PAGE, torn),
        transactions=2,
    )
    for what in ("index", "header MAC"):
        offset = {"index": 13, "header MAC": 14}[what]
        name = what.lower().replace(" ", "-")
        suite.resealed(
            f"slot-under-another-{name}",
            f"the current slot is sealed under another {what}",
            "uncopied",
            f.RECOVERED,
            {"commit slot 1 associated data": flip(offset)},
            transactions=2,
        )


def states(suite):
    """Faults in the current state, under a valid seal."""
    beyond = 1 << 63
    faults = {
        "sequence-one-more": ("a sequence that no frame has reached", plus(SEQUENCE, "Q", 1)),
        "sequence-one-less": ("the older slot's sequence with another state", plus(SEQUENCE, "Q", -1)),
        "sequence-most": ("the highest sequence", number(SEQUENCE, "Q", (1 << 64) - 1)),
        "end-one-more": ("an end a byte after the last frame, and after the file's", plus(END, "Q", 1)),
        "end-one-less": ("an end a byte before the last frame's", plus(END, "Q", -1)),
        "end-zero": ("an end of 0", number(END, "Q", 0)),
        "end-2-63": ("an end of 2^63, which is negative as a signed number", number(END, "Q", beyond)),
        "end-most": ("the highest end", number(END, "Q", (1 << 64) - 1)),
        "end-is-base-end": (
            "the end of the base, with the tail tag of the last frame",
            number(END, "Q", suite.end("uncopied", "root")),
        ),
        "end-before-base-end": ("an end a byte before the base's", number(END, "Q", suite.end("uncopied", "root") - 1)),
        "end-after-frame-2": (
            "an end after the frame before the last",
            number(END, "Q", suite.end("uncopied", "frame 2")),
        ),
        "tail-tag": ("a tail tag that is not the last frame's", flip(TAIL_TAG)),
        "tail-tag-last-byte": ("a tail tag of which the last byte is not the last frame's", flip(TAIL_TAG + 15)),
        "base-end-one-more": ("a base end a byte later", plus(BASE_END, "Q", 1)),
        "base-end-one-less": ("a base end a byte earlier", plus(BASE_END, "Q", -1)),
        "base-and-root-one-longer": ("a root a byte longer", each(plus(BASE_END, "Q", 1), plus(ROOT_LENGTH, "I", 1))),
        "root-one-shorter": ("a root that begins a byte later", plus(ROOT_LENGTH, "I", -1)),
        "root-one-earlier": ("a root that begins a byte earlier", plus(ROOT_LENGTH, "I", 1)),
        "root-in-slots": (
            "a root that begins in the commit slots",
            number(ROOT_LENGTH, "I", suite.end("uncopied", "root") - 12_288),
        ),
        "root-longer-than-file": (
            "a root that begins before the file",
            number(ROOT_LENGTH, "I", suite.end("uncopied", "root") + 1000),
        ),
        "root-length-zero": ("a root of no bytes", number(ROOT_LENGTH, "I", 0)),
        "root-length-127": ("a root of 127 bytes", number(ROOT_LENGTH, "I", 127)),
        "root-length-128": (
            "a root of 128 bytes whose tag is right and whose seal is wrong",
            number(ROOT_LENGTH, "I", 128),
        ),
        "root-length-1-mib": ("the longest root, in a file without one", number(ROOT_LENGTH, "I", 1_048_616)),
        "root-length-above-1-mib": ("a root of a byte more than 1 MiB", number(ROOT_LENGTH, "I", 1_048_617)),
        "root-length-most": ("the highest root length", number(ROOT_LENGTH, "I", 0xFFFFFFFF)),
        "reserved": ("the reserved field", number(RESERVED, "I", 1)),
        "root-tag": ("a root tag that is not the root's", flip(ROOT_TAG)),
        "root-tag-last-byte": ("a root tag of which the last byte is not the root's", flip(ROOT_TAG + 15)),
        "reserved-high": ("the last byte of the reserved field", flip(RESERVED + 3, 128)),
        "reserved-first": ("the first reserved byte at the end", flip(ZEROS)),
        "reserved-middle": ("a reserved byte in the middle", flip(2000, 128)),
        "reserved-last": ("the last reserved byte", flip(4055)),
        "zeros": ("a state of zeros", constant(bytes(4056))),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"state-{name}", comment, "uncopied", TAMPERED, {CURRENT: fault})


def absurd_states(suite):
    """Numbers that no file can have."""
    for name, place in {"sequence": SEQUENCE, "end": END, "base-end": BASE_END}.items():
        suite.resealed(
            f"state-{name}-absurd",
            "a number of 2^62",
            "uncopied",
            TAMPERED,
            {CURRENT: number(place, "Q", 1 << 62)},
        )


def older_states(suite):
    """Faults in the older slot, which must be valid if its seal opens."""
    for name, (comment, fault) in {
        "reserved": ("the reserved field of the older slot", number(RESERVED, "I", 1)),
        "reserved-last": ("the last reserved byte of the older slot", flip(4055)),
        "end-beyond-file": ("the older slot's end is after the end of the file", number(END, "Q", 1 << 40)),
        "end-before-base-end": ("the older slot's end is before its base's", number(END, "Q", 16_384)),
        "root-in-slots": (
            "the older slot's root begins in the commit slots",
            number(ROOT_LENGTH, "I", suite.end("uncopied", "root") - 12_288),
        ),
        "root-length-127": ("the older slot's root has 127 bytes", number(ROOT_LENGTH, "I", 127)),
        "root-length-above-1-mib": (
            "the older slot's root has a byte more than 1 MiB",
            number(ROOT_LENGTH, "I", 1_048_617),
        ),
        "tail-tag-without-frames": (
            "the older slot has no frames, and a tail tag that is not the root's",
            number(END, "Q", suite.end("uncopied", "root")),
        ),
        "zeros": ("the older slot contains zeros", constant(bytes(4056))),
        "same-sequence": ("the older slot has the current one's sequence", plus(SEQUENCE, "Q", 1)),
    }.items():
        suite.resealed(f"older-state-{name}", comment, "uncopied", TAMPERED, {OLDER: fault})
    suite.resealed(
        "older-state-is-newest",
        "the older slot has a higher sequence, which makes it the current slot and which no frame has",
        "uncopied",
        TAMPERED,
        {OLDER: plus(SEQUENCE, "Q", 10)},
    )
    for name, comment, fault in (
        ("root-tag", "another root tag", flip(ROOT_TAG)),
        ("root-length", "another root length", plus(ROOT_LENGTH, "I", 1)),
        ("base-end", "another base end, and a root that ends there", each(plus(BASE_END, "Q", -1), plus(ROOT_LENGTH, "I", -1))),
        ("end-above", "an end above the current slot's", number(END, "Q", len(suite.made["uncopied"].file) + 8)),
    ):
        comment = f"the older slot has {comment}"
        longer = lambda made: made.file + bytes(8)
        suite.resealed(f"older-state-{name}", comment, "uncopied", TAMPERED, {OLDER: fault}, after=longer)
    suite.resealed(
        "older-state-sequence-zero",
        "the older slot has sequence 0",
        "uncopied",
        TAMPERED,
        {OLDER: number(SEQUENCE, "Q", 0)},
    )
    suite.resealed(
        "ok-older-state-sequence-one",
        "the older slot has sequence 1",
        "uncopied",
        f.OK,
        {OLDER: number(SEQUENCE, "Q", 1)},
        reading="The older slot's sequence need not be that of any frame.",
    )
    last = suite.made["uncopied"].states[1].encode()
    suite.resealed("ok-same-states", "both slots hold the last state", "uncopied", f.OK, {OLDER: constant(last)})
    suite.resealed(
        "same-sequence-other-root",
        "both slots hold the last state, with different tags of the root",
        "uncopied",
        TAMPERED,
        {OLDER: constant(flip(ROOT_TAG)(last))},
    )
    suite.resealed(
        "same-sequence-other-root-created",
        "the two states of a new vault have different tags of the root",
        "created",
        TAMPERED,
        {OLDER: each(flip(TAIL_TAG), flip(ROOT_TAG))},
    )
    suite.resealed(
        "older-state-is-newest-and-wrong",
        "the slot with the higher sequence opens and is invalid: the other slot is not used",
        "tail-only",
        TAMPERED,
        {OLDER: plus(END, "Q", -1)},
    )


def bounds(suite):
    """States of a vault without frames."""
    both = ("commit slot 0 state", "commit slot 1 state")
    end = suite.end("created", "root")
    for name, (comment, fault) in {
        "sequence-one-more": ("a sequence that is not the root's", plus(SEQUENCE, "Q", 1)),
        "tail-tag-not-the-roots": ("a tail tag that is not the root's", flip(TAIL_TAG)),
        "both-tags": ("a tail tag and a root tag that are not the root's", each(flip(TAIL_TAG), flip(ROOT_TAG))),
        "reserved": ("a reserved byte", flip(ZEROS)),
        "end-zero": ("an end of 0", number(END, "Q", 0)),
        "beyond-file": (
            "the root and the end after the end of the file",
            each(number(END, "Q", end + 64), number(BASE_END, "Q", end + 64)),
        ),
    }.items():
        suite.resealed(
            f"created-state-{name}",
            comment + ", in both slots",
            "created",
            TAMPERED,
            {slot: fault for slot in both},
        )


def copies(suite):
    """Both slots hold the last state: one damaged slot loses nothing."""
    made = suite.made["small"]
    for index in (0, 1):
        for offset, what in ((0, "nonce"), (2000, "middle"), (-1, "end of the tag")):
            suite.flipped(
                f"copied-slot-{index}-{what.replace(' ', '-')}",
                f"commit slot {index}, the last state in both: {what}; nothing is lost",
                "small",
                f.RECOVERED,
                f"commit slot {index}",
                offset,
            )
        place = suite.place("small", f"commit slot {index}")
        older = suite.made["uncopied"].file[suite.place("uncopied", "commit slot 0") :][: f.PAGE]
        suite.damage(
            f"copied-slot-{index}-torn",
            f"a power loss tears the copy of the last state in slot {index}",
            "small",
            f.RECOVERED,
            (place + 512, f.PAGE - 512, older[512:]),
        )
        for name, fault in {
            "root-tag": flip(ROOT_TAG),
            "root-length": plus(ROOT_LENGTH, "I", -1),
            "end": plus(END, "Q", -1),
            "tail-tag": flip(TAIL_TAG),
        }.items():
            suite.resealed(
                f"copied-state-{index}-{name}",
                f"both slots have the last sequence, and slot {index} differs: {name.replace('-', ' ')}",
                "small",
                TAMPERED,
                {f"commit slot {index} state": fault},
            )
    older = suite.made["uncopied"].file[suite.place("uncopied", "commit slot 0") :][: f.PAGE]
    suite.damage(
        "ok-copy-never-arrived",
        "the older slot as it was before the last commit: a crash before the copy",
        "small",
        f.OK,
        (suite.place("small", "commit slot 0"), f.PAGE, older),
    )
    suite.damage(
        "older-state-and-damaged-slot",
        "one slot is put back to its older bytes and the other damaged: the state before is read",
        "small",
        f.RECOVERED,
        (suite.place("small", "commit slot 0"), f.PAGE, older),
        (suite.place("small", "commit slot 1"), 1, b"\x5a"),
        transactions=2,
    )
    sealer, part = made.sealer, "commit slot 1 of an older copy"
    associated = f.commit_associated(1, mac_of(made))
    again = f.seal(sealer.keys[f.COMMITS], made.random(24, part), associated, made.steps[2].encode())
    suite.damage(
        "ok-both-slots-older",
        "both slots are put back to an older state: only a record of what was seen shows it",
        "small",
        f.OK,
        (suite.place("small", "commit slot 0"), 2 * f.PAGE, older + again),
        transactions=2,
    )
    two = [[put("a", "1")], [put("b", "2")]]
    for index in (0, 1):
        suite.resealed(
            f"ok-uncopied-slot-{index}-current",
            f"{2 - index} commits that are not copied: slot {index} is current",
            "created",
            f.OK,
            change=lambda d, count=2 - index: d.update(tail=two[:count], uncopied=2),
        )
