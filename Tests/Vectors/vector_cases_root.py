"""The root of the base."""

import struct

import vault_format as f
from vector_suite import TAMPERED, constant, each, flip, following, number, plus

# Offsets in the root.
SEQUENCE, LOOKUP_KEY, FLOOR, RECENT_TAG, RECENT_LENGTH, BLOCKS, FIELDS = 0, 8, 40, 48, 64, 68, 72
ENTRIES = FIELDS + 4 + 6 + 12  # after the history limit
FIRST_ID, FIRST_SEQUENCE, OFFSET, LENGTH, COUNT, TAG = 0, 16, 24, 32, 36, 40  # in the entry of a block
ENTRY = 56


def moved(difference):
    """Adds to the sequence of a root without recent changes, and to its floor."""
    return each(plus(SEQUENCE, "Q", difference), plus(FLOOR, "Q", difference))


def add(suite):
    faults = {
        "sequence-one-more": ("a sequence that the first frame does not follow", moved(1)),
        "sequence-one-less": ("a sequence two before the first frame's", moved(-1)),
        "sequence-below-items": (
            "a sequence below that of an item",
            each(number(SEQUENCE, "Q", 0), number(FLOOR, "Q", 0)),
        ),
        "sequence-alone": ("another sequence, and the floor of the right one", plus(SEQUENCE, "Q", 1)),
        "blocks-one-more": ("one block more than the entries", plus(BLOCKS, "I", 1)),
        "blocks-one-less": ("one block less than the entries", plus(BLOCKS, "I", -1)),
        "blocks-zero": ("no blocks", number(BLOCKS, "I", 0)),
        "blocks-most": ("the highest number of blocks", number(BLOCKS, "I", 0xFFFFFFFF)),
        "blocks-wrap": ("a number of blocks whose size wraps around in 32 bits", plus(BLOCKS, "I", 0x20000000)),
        "lookup-key": ("another lookup key: no lookup id is right", flip(LOOKUP_KEY)),
        "lookup-key-last-byte": ("a lookup key with another last byte", flip(LOOKUP_KEY + 31)),
        "floor-one-less": ("a floor below the root, without recent changes", plus(FLOOR, "Q", -1)),
        "floor-one-more": ("a floor above the root", plus(FLOOR, "Q", 1)),
        "floor-zero": ("a floor of 0, without recent changes", number(FLOOR, "Q", 0)),
        "floor-2-62": ("a floor of 2^62", number(FLOOR, "Q", 1 << 62)),
        "floor-most": ("the highest floor", number(FLOOR, "Q", (1 << 64) - 1)),
        "recent-tag": ("a tag of recent changes, without them", flip(RECENT_TAG)),
        "recent-tag-last-byte": ("the last byte of a tag of recent changes, without them", flip(RECENT_TAG + 15)),
        "recent-length-1": ("recent changes of a byte", number(RECENT_LENGTH, "I", 1)),
        "recent-length-16": ("recent changes of 24 bytes less than no pair", number(RECENT_LENGTH, "I", 16)),
        "recent-length-40": ("sealed recent changes without a pair", number(RECENT_LENGTH, "I", 40)),
        "recent-length-64": ("one recent change that the file does not have", number(RECENT_LENGTH, "I", 64)),
        "recent-length-64-below": (
            "one recent change that the file does not have, with a floor for it",
            each(number(RECENT_LENGTH, "I", 64), plus(FLOOR, "Q", -1)),
        ),
        "recent-length-most": ("the highest length of recent changes", number(RECENT_LENGTH, "I", 0xFFFFFFFF)),
        "lookup-key-missing": ("no lookup key", lambda value: value[:LOOKUP_KEY] + value[FLOOR:]),
        "something-follows": ("a byte follows", following(b"\0")),
        "entry-follows": ("56 bytes follow", following(bytes(ENTRY))),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "header-alone": ("two blocks counted, without entries", lambda value: value[:ENTRIES]),
        "without-fields": ("neither fields nor entries", lambda value: value[:FIELDS]),
        "entries-exchanged": (
            "the two entries exchanged",
            lambda value: value[:ENTRIES] + value[ENTRIES + ENTRY :] + value[ENTRIES : ENTRIES + ENTRY],
        ),
        "entry-twice": ("one block twice", lambda value: value[: ENTRIES + ENTRY] + value[ENTRIES : ENTRIES + ENTRY]),
    }
    for index in (0, 1):
        at = ENTRIES + ENTRY * index
        block = f"block-{index}"
        faults |= {
            f"{block}-first-id": (f"a first lookup id that is not block {index}'s", flip(at + FIRST_ID)),
            f"{block}-first-id-last-byte": (
                f"a first lookup id that is not block {index}'s, in its last byte",
                flip(at + 15),
            ),
            f"{block}-first-sequence-one-more": (
                f"a first sequence that is not block {index}'s",
                plus(at + FIRST_SEQUENCE, "Q", 1),
            ),
            f"{block}-first-sequence-zero": (
                f"a first sequence of 0 for block {index}",
                number(at + FIRST_SEQUENCE, "Q", 0),
            ),
            f"{block}-first-sequence-2-62": (
                f"a first sequence of 2^62 for block {index}",
                number(at + FIRST_SEQUENCE, "Q", 1 << 62),
            ),
            f"{block}-offset-one-more": (f"block {index} a byte later", plus(at + OFFSET, "Q", 1)),
            f"{block}-offset-one-less": (f"block {index} a byte earlier", plus(at + OFFSET, "Q", -1)),
            f"{block}-offset-most": (f"the highest offset for block {index}", number(at + OFFSET, "Q", (1 << 64) - 1)),
            f"{block}-offset-wraps": (
                f"an offset and a length of block {index} that wrap around to its end",
                each(
                    number(at + OFFSET, "Q", (1 << 64) - 4096),
                    number(at + LENGTH, "I", suite.end("small", f"block {index}") + 4096),
                ),
            ),
            f"{block}-length-one-more": (f"block {index} a byte longer", plus(at + LENGTH, "I", 1)),
            f"{block}-length-one-less": (f"block {index} a byte shorter", plus(at + LENGTH, "I", -1)),
            f"{block}-length-zero": (f"a length of 0 for block {index}", number(at + LENGTH, "I", 0)),
            f"{block}-length-39": (f"a length too short for a seal for block {index}", number(at + LENGTH, "I", 39)),
            f"{block}-length-1-mib": (f"a length of 1 MiB for block {index}", number(at + LENGTH, "I", (1 << 20) + 40)),
            f"{block}-length-above-1-mib": (
                f"a length of more than 1 MiB for block {index}",
                number(at + LENGTH, "I", (1 << 20) + 41),
            ),
            f"{block}-length-most": (f"the highest length for block {index}", number(at + LENGTH, "I", 0xFFFFFFFF)),
            f"{block}-count-one-more": (f"an item more in block {index}", plus(at + COUNT, "I", 1)),
            f"{block}-count-one-less": (f"an item less in block {index}", plus(at + COUNT, "I", -1)),
            f"{block}-count-zero": (f"no items in block {index}", number(at + COUNT, "I", 0)),
            f"{block}-count-most": (f"the highest number of items in block {index}", number(at + COUNT, "I", 0xFFFFFFFF)),
            f"{block}-tag": (f"a tag that is not block {index}'s", flip(at + TAG)),
            f"{block}-tag-last-byte": (f"a tag of which the last byte is not block {index}'s", flip(at + TAG + 15)),
        }
    faults["counts-moved"] = (
        "an item more in one block and one less in the other",
        each(plus(ENTRIES + COUNT, "I", 1), plus(ENTRIES + ENTRY + COUNT, "I", -1)),
    )
    for name, (comment, fault) in faults.items():
        suite.resealed(f"root-{name}", comment, "small", TAMPERED, {"root": fault})
    for name, offset in (("label", 0), ("file-id", 11), ("offset", 27)):
        suite.resealed(
            f"root-sealed-under-another-{name}",
            f"the root is sealed under another {name.replace('-', ' ')}",
            "small",
            TAMPERED,
            {"root associated data": flip(offset)},
        )
    suite.resealed("root-empty-index", "an index of no bytes", "created", TAMPERED, {"root": constant(b"")})
    suite.resealed(
        "root-created-block",
        "one block counted, without an entry",
        "created",
        TAMPERED,
        {"root": number(BLOCKS, "I", 1)},
    )
    suite.resealed(
        "ok-root-another-lookup-key",
        "another lookup key, under which nothing was stored yet",
        "created",
        f.OK,
        {"root": flip(LOOKUP_KEY)},
    )
    suite.resealed(
        "root-created-empty-block",
        "an entry for a block of no bytes",
        "created",
        TAMPERED,
        {"root": each(number(BLOCKS, "I", 1), following(bytes(24) + struct.pack("<QII", 12_288, 0, 0) + bytes(16)))},
    )
    suite.resealed(
        "root-newer-than-slot",
        "the root has a higher sequence than the slots",
        "created",
        TAMPERED,
        {"root": moved(1)},
    )
