"""Key slots and their cost."""

import struct

import vault_format as f
from vector_bases import CI_KEY, NFC, OTHER_KEY, PASSPHRASE, key_slot, noise, unknown_slot
from vector_suite import TAMPERED, each, following, number, patch, plus

BY_PASSPHRASE = {"passphrase": PASSPHRASE}


def add(suite):
    slots(suite)
    costs(suite)


def slots(suite):
    key, passphrase = "key slot 0", "key slot 1"
    for kind in (0, 5, 255):
        suite.overwritten(
            f"slot-type-{kind}",
            f"a key slot whose type is {kind}, which is unknown",
            "small",
            f.WRONG_KEY,
            key,
            0,
            bytes([kind]),
        )
    suite.overwritten(
        "slot-type-1-for-2",
        "a key slot whose type is passphrase: the layout is wrong",
        "small",
        TAMPERED,
        key,
        0,
        b"\x01",
    )
    for kind in (3, 4):
        suite.overwritten(
            f"slot-type-{kind}-for-2",
            f"a key slot whose type is {kind}, a recipient's: the layout is wrong",
            "small",
            TAMPERED,
            key,
            0,
            bytes([kind]),
        )
    suite.overwritten(
        "slot-type-2-for-1",
        "a passphrase slot whose type is key: the layout is wrong",
        "small",
        TAMPERED,
        passphrase,
        0,
        b"\x02",
    )
    for version in (0, 2, 255):
        suite.overwritten(
            f"slot-version-{version}",
            f"a key slot of version {version}, which is unknown",
            "small",
            f.WRONG_KEY,
            key,
            1,
            bytes([version]),
        )
    suite.overwritten(
        "slot-other-unknown-unauthenticated",
        "a slot that is not used is made unknown: the MAC is wrong",
        "small",
        TAMPERED,
        passphrase,
        0,
        b"\x05",
    )
    suite.resealed(
        "ok-slot-made-unknown",
        "a slot that is not used is unknown",
        "small",
        f.OK,
        {"key slot 1 header": number(0, "B", 5)},
    )
    suite.resealed(
        "ok-slot-unknown-of-4-bytes",
        "an unknown slot of 4 bytes",
        "small",
        f.OK,
        change=lambda d: d["slots"].insert(0, unknown_slot(5, 1, b"")),
    )
    same = unknown_slot(5, 1, noise(16, "one slot id") + bytes(20))
    suite.resealed(
        "ok-unknown-slots-alike",
        "two equal unknown slots",
        "small",
        f.OK,
        change=lambda d: d["slots"].extend([same, same]),
        reading="Only known slots have a slot id: the bytes after the length of an unknown slot are not parsed.",
    )
    length = suite.made["small"].parts[key][1]
    for value in (0, 3, 4, length - 1, length + 1, 0xFFFF):
        data = struct.pack("<H", value)
        suite.overwritten(
            f"slot-length-{value}", f"a key slot length of {value} instead of {length}", "small", TAMPERED, key, 2, data
        )
    for value in (length - 1, length + 1):
        suite.resealed(
            f"slot-length-{value}-resealed",
            f"a key slot length of {value} instead of {length}, resealed",
            "small",
            TAMPERED,
            {f"{key} header": number(2, "H", value)},
        )
    longer = each(plus(2, "H", 1))
    suite.resealed(
        "slot-with-byte-more",
        "a byte after the wrapped key, counted in the slot's length",
        "small",
        TAMPERED,
        {f"{key} header": longer, f"{key} wrapped key": following(b"\0")},
    )
    suite.resealed(
        "unknown-slot-of-3-bytes",
        "an unknown slot with a length of 3",
        "small",
        TAMPERED,
        {"key slots": following(b"\x05\x01\x03\0"), "header fields": number(60, "B", 3)},
    )
    suite.resealed(
        "unknown-slots-overlapping",
        "an unknown slot of 3 bytes, whose fourth byte begins the next slot",
        "small",
        TAMPERED,
        {"key slots": following(b"\x05\x01\x03\0\x09\x05\0\0"), "header fields": number(60, "B", 4)},
    )
    for offset, what in ((4, "slot id"), (20, "time of creation"), (29, "label"), (31, "salt")):
        suite.flipped(
            f"slot-{what.replace(' ', '-')}",
            f"the {what} of the key slot: its commitment does not match",
            "small",
            f.WRONG_KEY,
            key,
            offset,
        )
        suite.flipped(
            f"slot-{what.replace(' ', '-')}-of-another",
            f"the {what} of a slot that is not used: the MAC is wrong",
            "small",
            TAMPERED,
            passphrase,
            offset,
        )
    suite.flipped("slot-commitment", "the commitment of the key slot", "small", f.WRONG_KEY, key, -104)
    suite.flipped(
        "slot-commitment-last-byte", "the last byte of the key slot's commitment", "small", f.WRONG_KEY, key, -73
    )
    suite.flipped(
        "slot-commitment-of-another",
        "the commitment of a slot that is not used: the MAC is wrong",
        "small",
        TAMPERED,
        key,
        -104,
        credential=BY_PASSPHRASE,
    )
    for offset, what in ((-72, "nonce"), (-48, "wrapped key"), (-1, "tag")):
        suite.flipped(
            f"slot-{what.replace(' ', '-')}-damaged",
            f"the {what} of a key slot whose commitment matches",
            "small",
            TAMPERED,
            key,
            offset,
        )
        suite.flipped(
            f"slot-{what.replace(' ', '-')}-damaged-passphrase",
            f"the {what} of a passphrase slot whose commitment matches",
            "small",
            TAMPERED,
            passphrase,
            offset,
            credential=BY_PASSPHRASE,
        )
    suite.resealed(
        "slot-ids-alike",
        "two key slots with the same id",
        "small",
        TAMPERED,
        {f"{slot} header": patch(4, noise(16, "one slot id")) for slot in (key, passphrase)},
    )
    labels = {
        "nul": ("a NUL in a key slot's label", b"c\0"),
        "not-utf8": ("a key slot's label that is not UTF-8", b"\xff\xfe"),
        "surrogate": ("a surrogate in a key slot's label", b"\xed\xa0\x80"),
        "65": ("a key slot's label of 65 bytes", b"l" * 65),
        "255": ("a key slot's label of 255 bytes", b"l" * 255),
    }
    for name, (comment, label) in labels.items():
        suite.resealed(f"slot-label-{name}", comment, "small", TAMPERED, {f"{key} header": labelled(label)})
    for name, label in {"empty": b"", "64": "é".encode() * 32}.items():
        suite.resealed(
            f"ok-slot-label-{name}",
            f"a key slot's label of {len(label)} bytes",
            "small",
            f.OK,
            {f"{key} header": labelled(label)},
        )
    suite.overwritten(
        "slot-label-nul-unauthenticated",
        "a NUL in a key slot's label: the layout is checked before the key",
        "small",
        TAMPERED,
        key,
        29,
        b"\0",
    )
    exchanged = suite.made["small"]
    first, second = (exchanged.parts[part] for part in (key, passphrase))
    data = exchanged.file[second[0] : sum(second)] + exchanged.file[first[0] : sum(first)]
    suite.damage(
        "slots-exchanged", "the two slots exchanged: the MAC is wrong", "small", TAMPERED, (first[0], len(data), data)
    )
    suite.resealed(
        "ok-one-key-twice",
        "two slots with the same key: the first opens the vault",
        "small",
        f.OK,
        change=lambda d: d["slots"].append(key_slot("again", CI_KEY)),
    )


def labelled(label):
    """Replaces the label in the header of a key slot, and its length."""

    def fault(head):
        old = head[28]
        head = head[:28] + bytes([len(label)]) + label + head[29 + old :]
        length = int.from_bytes(head[2:4], "little") - old + len(label)
        return head[:2] + struct.pack("<H", length) + head[4:]

    return fault


def costs(suite):
    slot, at = "key slot 1", 29 + len("laptop")
    passes, memory = at, at + 4
    faults = {
        "passes-0": ("0 passes", passes, 0, TAMPERED),
        "work-above-4-gib": ("4 GiB and 8 KiB of work", passes, 524_289, f.COST_LIMIT_EXCEEDED),
        "passes-most": ("2^32 − 1 passes", passes, 0xFFFFFFFF, f.COST_LIMIT_EXCEEDED),
        "memory-0": ("no memory", memory, 0, TAMPERED),
        "memory-7-kib": ("7 KiB of memory", memory, 7, TAMPERED),
        "memory-1-gib-and-1-kib": ("1 GiB and 1 KiB of memory", memory, (1 << 20) + 1, f.COST_LIMIT_EXCEEDED),
        "memory-4-tib": ("4 TiB of memory less 1 KiB", memory, 0xFFFFFFFF, f.COST_LIMIT_EXCEEDED),
    }
    for name, (what, offset, value, outcome) in faults.items():
        suite.overwritten(
            f"cost-{name}",
            f"a passphrase slot that requires {what}",
            "small",
            outcome,
            slot,
            offset,
            struct.pack("<I", value),
            credential=BY_PASSPHRASE,
        )
        above = outcome == f.COST_LIMIT_EXCEEDED
        suite.resealed(
            f"ok-cost-{name}-not-tried" if above else f"cost-{name}-not-tried",
            f"a passphrase slot that requires {what}; the credential is a key",
            "small",
            f.OK if above else TAMPERED,
            {f"{slot} header": number(offset, "I", value)},
        )
    suite.overwritten(
        "cost-passes-2",
        "two passes instead of one: the commitment does not match",
        "small",
        f.WRONG_KEY,
        slot,
        passes,
        struct.pack("<I", 2),
        credential=BY_PASSPHRASE,
    )
    suite.overwritten(
        "cost-memory-9-kib",
        "9 KiB instead of 8: the commitment does not match",
        "small",
        f.WRONG_KEY,
        slot,
        memory,
        struct.pack("<I", 9),
        credential=BY_PASSPHRASE,
    )

    def with_cost(**cost):
        return lambda d: d["slots"][1].update(cost)

    for name, work, outcome in (
        ("ok-cost-work-at-limit", 136, f.OK),
        ("cost-work-above-limit", 135, f.COST_LIMIT_EXCEEDED),
    ):
        suite.resealed(
            name,
            f"8 KiB of memory and 17 passes with a limit of {work} KiB of work",
            "small",
            outcome,
            change=with_cost(passes=17),
            credential=BY_PASSPHRASE,
            limits={"work_kib": work},
        )
    suite.resealed(
        "cost-memory-above-lower-limit",
        "more memory than a lowered limit allows",
        "small",
        f.COST_LIMIT_EXCEEDED,
        change=with_cost(memory_kib=65),
        credential=BY_PASSPHRASE,
        limits={"memory_kib": 64},
    )
    suite.resealed(
        "ok-cost-at-lower-limit",
        "as much memory as a lowered limit allows",
        "small",
        f.OK,
        change=with_cost(memory_kib=64),
        credential=BY_PASSPHRASE,
        limits={"memory_kib": 64},
    )
    for name, low, high in (
        ("memory-below-passes-above", (memory, 7), (passes, 0xFFFFFFFF)),
        ("passes-below-memory-above", (passes, 0), (memory, 0xFFFFFFFF)),
    ):
        suite.overwritten(
            f"cost-{name}",
            f"a passphrase slot's cost: {name.replace('-', ' ')}: the lower bound comes first",
            "small",
            TAMPERED,
            slot,
            passes,
            struct.pack("<II", *(value for _, value in sorted((low, high)))),
            credential=BY_PASSPHRASE,
        )
    tries(suite)


def tries(suite):
    """Six passphrase slots, the first at index 0 and the others from index 2: which are tried."""

    def slot(d, number):
        return d["slots"][0 if number == 1 else number]

    def costly(*numbers):
        return lambda d: [slot(d, number).update(memory_kib=4096) for number in numbers]

    def credential(number):
        return {"passphrase": {3: "a\0b", 4: NFC}.get(number, f"passphrase {number}")}

    limit = {"memory_kib": 2048}
    for name, over, passphrase, outcome in (
        ("ok-fifth-after-one-passed-over", (1,), 5, f.OK),
        ("ok-fifth-after-fourth-passed-over", (4,), 5, f.OK),
        ("ok-sixth-after-two-passed-over", (2, 3), 6, f.OK),
        ("ok-sixth-after-one-passed-over", (1,), 6, f.OK),
        ("passed-over-is-the-one", (3,), 3, f.COST_LIMIT_EXCEEDED),
        ("none-after-one-passed-over", (4,), 7, f.COST_LIMIT_EXCEEDED),
        ("all-passed-over", (1, 2, 3, 4, 5, 6), 1, f.COST_LIMIT_EXCEEDED),
        ("none-and-sixth-passed-over", (6,), 7, f.COST_LIMIT_EXCEEDED),
        ("ok-second-before-passed-over", (3, 4, 5, 6), 2, f.OK),
    ):
        suite.resealed(
            f"{name if name.startswith('ok-') else 'cost-' + name}",
            f"passphrase {passphrase} of six; above the limit are {', '.join(map(str, over))}",
            "passphrases",
            outcome,
            change=costly(*over),
            credential=credential(passphrase),
            limits=limit,
        )
    suite.resealed(
        "cost-above-and-wrong-key",
        "a passphrase slot above the limit, and a key that opens nothing: its slots cost nothing",
        "passphrases",
        f.WRONG_KEY,
        change=costly(1),
        credential={"key_text": OTHER_KEY},
        limits=limit,
    )
    # Each slot is 8 KiB of work, unless it is costly.
    for name, over, work, passphrase, outcome in (
        ("ok-sixth-at-limit", {}, 48, 6, f.OK),
        ("sixth-above", {}, 40, 6, f.COST_LIMIT_EXCEEDED),
        ("sixth-a-kib-above", {}, 47, 6, f.COST_LIMIT_EXCEEDED),
        ("ok-fifth-at-limit", {}, 40, 5, f.OK),
        ("none-within-limit", {}, 48, 7, f.WRONG_KEY),
        ("ok-passed-over-costs-nothing", {3: 16}, 40, 6, f.OK),
        ("ok-passes-count", {1: 2}, 48, 5, f.OK),
        ("passes-count", {1: 2}, 48, 6, f.COST_LIMIT_EXCEEDED),
        ("ok-cheap-after-passed-over", {5: 4}, 56, 6, f.OK),
        ("first-above", {}, 7, 1, f.COST_LIMIT_EXCEEDED),
    ):
        suite.resealed(
            f"ok-work-{name[3:]}" if name.startswith("ok-") else f"work-{name}",
            f"passphrase {passphrase} of six with a limit of {work} KiB of work"
            + "".join(f"; slot {number} has {passes} passes" for number, passes in over.items()),
            "passphrases",
            outcome,
            change=lambda d, over=over: [slot(d, number).update(passes=passes) for number, passes in over.items()]
            + [slot(d, 1).update(created=slot(d, 1).get("created", 0) + 1)],
            credential=credential(passphrase),
            limits={"work_kib": work},
        )
    suite.resealed(
        "ok-work-no-limit-for-keys",
        "a key, with a limit of no work at all",
        "passphrases",
        f.OK,
        change=costly(1),
        credential={"key_text": CI_KEY},
        limits={"work_kib": 0},
    )
    for index, name in ((4, "fourth-of-six"), (5, "fifth-of-six"), (6, "sixth-of-six")):
        which = name.split("-")[0]
        for below, value, outcome in ((False, 0xFFFFFFFF, f.OK), (True, 7, TAMPERED)):
            suite.resealed(
                f"cost-{name}-below" if below else f"ok-cost-{name}",
                f"{value} KiB in the {which} passphrase slot; the first one opens the vault",
                "passphrases",
                outcome,
                {f"key slot {index} header": number(29 + len("slot 4") + 4, "I", value)},
            )
