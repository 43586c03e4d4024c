"""The list of blocks, and the recent changes."""

import struct

import vault_format as f
import vault_records as p
from vector_bases import pairs, put
from vector_cases_root import (
    BLOCKS,
    ENTRIES,
    ENTRY,
    FLOOR,
    LENGTH,
    OFFSET,
    RECENT_LENGTH,
    RECENT_TAG,
    SEQUENCE,
)
from vector_suite import TAMPERED, constant, each, flip, following, number, patch, plus

DAMAGES = ((0, "nonce"), (24, "first byte"), (-17, "last byte"), (-16, "tag"), (-1, "end of the tag"))


def add(suite):
    for part in ("block 0", "block 4", "recent", "root"):
        for offset, what in DAMAGES:
            suite.flipped(
                f"index-{part.replace(' ', '-')}-damaged-{what.replace(' ', '-')}",
                f"damage without a key, in a base of five blocks: the {what} of {part}",
                "blocks",
                TAMPERED,
                part,
                offset,
            )
    arrangement(suite)
    recent_changes(suite)
    floors(suite)


def arrangement(suite):
    """Blocks before recent changes."""
    made = suite.made["blocks"]
    for name, size, comment in (("one-block", 10, "one block"), ("one-item-per-block", 1, "a block for each item")):
        suite.resealed(
            f"ok-index-{name}",
            f"{comment}: a reader accepts it",
            "blocks",
            f.OK,
            change=lambda d, size=size: d["base"].update(items_per_block=size),
        )
    for part in ("block 0", "block 2 value 0", "recent", "root"):
        suite.resealed(
            f"index-gap-before-{part.replace(' ', '-')}",
            f"a byte before {part}, which all offsets include",
            "blocks",
            TAMPERED,
            {f"gap before {part}": constant(b"\0")},
        )
    last = ENTRIES + 4 * ENTRY
    faults = {
        "last-missing": (
            "the last block is not named",
            each(number(BLOCKS, "I", 4), lambda value: value[:-ENTRY]),
        ),
        "first-missing": (
            "the first block is not named",
            each(number(BLOCKS, "I", 4), lambda value: value[:ENTRIES] + value[ENTRIES + ENTRY :]),
        ),
        "none": (
            "no block is named",
            each(number(BLOCKS, "I", 0), lambda value: value[:ENTRIES]),
        ),
        "in-place-of-recent": (
            "a block in the place of the recent changes",
            number(last + OFFSET, "Q", suite.place("blocks", "recent")),
        ),
        "beyond-root": ("a block that reaches beyond the root", plus(last + LENGTH, "I", 1000)),
        "same-offset": (
            "two blocks of one place",
            lambda value: patch(ENTRIES + ENTRY + OFFSET, value[ENTRIES + OFFSET : ENTRIES + ENTRY])(value),
        ),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"index-block-{name}", comment, "blocks", TAMPERED, {"root": fault})
    suite.resealed(
        "ok-index-another-file-id",
        "the same vault in another file",
        "blocks",
        f.OK,
        change=lambda d: d.update(file_id=bytes(range(16)).hex()),
    )
    for part in ("block 1", "recent"):
        start, size = made.parts[part]
        suite.resealed(
            f"{part.replace(' ', '-')}-from-another-file",
            f"{part} is from another file of the same vault",
            "blocks",
            TAMPERED,
            after=lambda other, start=start, size=size: made.file[:start]
            + other.file[start : start + size]
            + made.file[start + size :],
            change=lambda d: d.update(file_id=bytes(range(16)).hex()),
        )
    descending = lambda items: [*items[:4], *items[6:8], *items[4:6], *items[8:]]
    suite.resealed(
        "index-items-descend", "the items of two blocks exchanged", "blocks", TAMPERED, {"base items": descending}
    )
    suite.resealed(
        "ok-index-without-recent",
        "five blocks without recent changes",
        "blocks",
        f.OK,
        change=lambda d: [d["base"].pop(name) for name in ("recent", "floor")],
    )
    end = suite.end("blocks", "block 4")
    suite.truncated("truncated-index-after-blocks", "the file ends after its blocks", "blocks", TAMPERED, end)


def recent_changes(suite):
    """The sealed list. The vault `recent` has the floor 4, seven pairs of 5 to 19, and the root 20."""
    for offset, what in DAMAGES:
        suite.flipped(
            f"recent-damaged-{what.replace(' ', '-')}",
            f"damage without a key: the {what} of the recent changes",
            "recent",
            TAMPERED,
            "recent",
            offset,
        )
    for name, offset in (("label", 0), ("file-id", 13), ("offset", 29)):
        suite.resealed(
            f"recent-sealed-under-another-{name}",
            f"the recent changes are sealed under another {name.replace('-', ' ')}",
            "recent",
            TAMPERED,
            {"recent associated data": flip(offset)},
        )
    size = p.PAIR.size
    count = len(suite.made["recent"].description["base"]["recent"])

    def exchanged(value, first, second):
        found = [value[at : at + size] for at in range(0, len(value), size)]
        found[first], found[second] = found[second], found[first]
        return b"".join(found)

    sequence_of = lambda index: index * size
    faults = {
        "descending": ("two pairs exchanged", lambda value: exchanged(value, 0, 1)),
        "one-sequence-descending": (
            "two pairs of one sequence, the higher tag first",
            lambda value: exchanged(value, 1, 2),
        ),
        "last-first": ("the last pair in place of the first", lambda value: exchanged(value, 0, count - 1)),
        "pair-twice": ("a pair twice", lambda value: value[:size] * 2 + value[2 * size :]),
        "last-twice": ("the last pair twice", lambda value: value[: -2 * size] + value[-size:] * 2),
        "at-root": ("a pair of the root's sequence", number(sequence_of(count - 1), "Q", 20)),
        "above-root": ("a pair of a sequence above the root's", number(sequence_of(count - 1), "Q", 21)),
        "2-62": ("a pair of the sequence 2^62", number(sequence_of(count - 1), "Q", 1 << 62)),
        "most": ("a pair of the highest sequence", number(sequence_of(count - 1), "Q", (1 << 64) - 1)),
        "below-floor": ("a pair below the floor", number(0, "Q", 3)),
        "zero": ("a pair of the sequence 0, below the floor", number(0, "Q", 0)),
        "empty": ("no pair, sealed", constant(b"")),
        "padded": ("pairs that are padded as values are", f.pad),
        "byte-follows": ("a byte after the pairs", following(b"\0")),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"recent-{name}", comment, "recent", TAMPERED, {"recent": fault})
    ok = {
        "at-floor": ("a pair at the floor", number(0, "Q", 4)),
        "first-is-later": ("the first pair is above the floor", number(0, "Q", 6)),
        "before-root": (
            "two pairs of the sequence before the root's",
            patch(sequence_of(count - 2), struct.pack("<Q", 19) + bytes(16)),
        ),
        "pair-more": ("a pair more", following(struct.pack("<Q", 19) + b"\xff" * 16)),
        "pair-less": ("a pair less", lambda value: value[:-size]),
    }
    for name, (comment, fault) in ok.items():
        suite.resealed(f"ok-recent-{name}", comment, "recent", f.OK, {"recent": fault})
    zeros = lambda d: d["base"].update(recent=[[5, "00" * 16], [6, "ff" * 16]])
    suite.resealed("ok-recent-any-tag", "tags of zeros and of ones", "recent", f.OK, change=zeros)
    zero = lambda d: d["base"].update(recent=pairs(0, 1), floor=0)
    suite.resealed("recent-from-zero", "a floor of 0, and a pair of it", "recent", TAMPERED, change=zero)
    first = lambda d: d["base"].update(recent=pairs(1, 2), floor=1)
    suite.resealed("ok-recent-from-one", "a floor of 1, and a pair of it", "recent", f.OK, change=first)
    one = lambda d: d["base"].update(recent=pairs(19), floor=19)
    suite.resealed("ok-recent-one", "one recent change, at the floor", "recent", f.OK, change=one)
    highest = lambda d: d.update(
        base={"items": [], "sequence": (1 << 62) - 2, "recent": pairs((1 << 62) - 3), "floor": (1 << 62) - 3}
    )
    suite.resealed("ok-recent-highest", "a recent change of the highest sequences", "recent", f.OK, change=highest)
    more = lambda d: d["base"].update(recent=pairs(*range(1000, 1000 + 2049)))
    suite.resealed("recent-2049", "2,049 recent changes", "most-recent", TAMPERED, change=more)
    suite.resealed(
        "ok-recent-2048-and-frames",
        "2,048 recent changes, and a frame",
        "most-recent",
        f.OK,
        change=lambda d: d.update(tail=[[put("one", "1")]]),
    )


def floors(suite):
    """What the root says of the recent changes."""
    length = p.PAIR.size * 7 + f.SEAL_OVERHEAD
    faults = {
        "floor-above-first": ("a floor above the first pair", number(FLOOR, "Q", 6)),
        "floor-above-last": ("a floor above every pair", number(FLOOR, "Q", 20)),
        "floor-above-root": ("a floor above the root", number(FLOOR, "Q", 21)),
        "floor-2-62": ("a floor of 2^62 over pairs", number(FLOOR, "Q", 1 << 62)),
        "floor-most": ("the highest floor over pairs", number(FLOOR, "Q", (1 << 64) - 1)),
        "tag": ("a tag that is not that of the recent changes", flip(RECENT_TAG)),
        "tag-last-byte": ("a tag of which the last byte is not that of the recent changes", flip(RECENT_TAG + 15)),
        "length-one-more": ("recent changes a byte longer", plus(RECENT_LENGTH, "I", 1)),
        "length-one-less": ("recent changes a byte shorter", plus(RECENT_LENGTH, "I", -1)),
        "length-pair-more": ("a pair more than the recent changes have", plus(RECENT_LENGTH, "I", 24)),
        "length-pair-less": ("a pair less than the recent changes have", plus(RECENT_LENGTH, "I", -24)),
        "length-40": ("recent changes without a pair", number(RECENT_LENGTH, "I", 40)),
        "length-39": ("recent changes too short for a seal", number(RECENT_LENGTH, "I", 39)),
        "length-16": ("recent changes of a length too short for a seal by a pair", number(RECENT_LENGTH, "I", 16)),
        "length-zero": ("recent changes that nothing names: a length of 0", number(RECENT_LENGTH, "I", 0)),
        "unnamed": (
            "recent changes that nothing names",
            each(number(RECENT_LENGTH, "I", 0), patch(RECENT_TAG, bytes(16)), number(FLOOR, "Q", 20)),
        ),
        "length-2049": ("2,049 pairs, in a file without them", number(RECENT_LENGTH, "I", 40 + 24 * 2049)),
        "length-most": ("the highest length over pairs", number(RECENT_LENGTH, "I", 0xFFFFFFFF)),
        "root-lower": ("a root of the last pair's sequence", number(SEQUENCE, "Q", 19)),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"recent-{name}", comment, "recent", TAMPERED, {"root": fault})
    suite.resealed("recent-floor-0", "a floor of 0 over pairs", "recent", TAMPERED, {"root": number(FLOOR, "Q", 0)})
    for value in (1, 5):
        suite.resealed(
            f"ok-recent-floor-{value}", f"a floor of {value}", "recent", f.OK, {"root": number(FLOOR, "Q", value)}
        )
    suite.resealed(
        "recent-empty-and-floor",
        "no pair, sealed, and the floor of no pairs",
        "recent",
        TAMPERED,
        {"recent": constant(b""), "root": number(FLOOR, "Q", 20)},
    )
    end = suite.end("recent", "recent")
    assert end - suite.place("recent", "recent") == length
    suite.resealed(
        "recent-another",
        "other recent changes of the same length in place of those that the root names",
        "recent",
        TAMPERED,
        change=lambda d: d["base"].update(recent=pairs(*[(n, f"other {n}") for n in range(5, 12)])),
        after=lambda made: with_part(suite, made, "recent"),
    )


def with_part(suite, other, part):
    """The file of the vault `recent` with a part of another file."""
    made = suite.made["recent"]
    start, length = made.parts[part]
    assert other.parts[part] == (start, length)
    return made.file[:start] + other.file[start : start + length] + made.file[start + length :]
