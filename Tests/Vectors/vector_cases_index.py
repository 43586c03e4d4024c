"""An index of two levels, and the recent changes."""

import struct

import vault_format as f
import vault_records as p
from vector_bases import pairs, put
from vector_cases_root import (
    BLOCKS,
    COUNT,
    ENTRIES,
    ENTRY,
    FIRST_ID,
    FIRST_SEQUENCE,
    FLOOR,
    HEIGHT,
    ITEMS,
    LENGTH,
    OFFSET,
    RECENT_LENGTH,
    RECENT_TAG,
    SEQUENCE,
    TAG,
)
from vector_suite import TAMPERED, constant, each, flip, following, number, patch, plus

DAMAGES = ((0, "nonce"), (24, "first byte"), (-17, "last byte"), (-16, "tag"), (-1, "end of the tag"))


def add(suite):
    for part in ("node 0", "node 2", "block 0", "block 4", "recent", "root"):
        for offset, what in DAMAGES:
            suite.flipped(
                f"index-{part.replace(' ', '-')}-damaged-{what.replace(' ', '-')}",
                f"damage without a key, with an index of two levels: the {what} of {part}",
                "nodes",
                TAMPERED,
                part,
                offset,
            )
    heights(suite)
    nodes(suite)
    named_nodes(suite)
    arrangement(suite)
    recent_changes(suite)
    floors(suite)


def plain(suite, base, part):
    """The plaintext of a part of the base of a vault."""
    made = suite.made[base]
    start, length = made.parts[part]
    associated = p.part_associated(part.split()[0].encode(), made.file_id, start)
    return f.open_seal(made.sealer.keys[f.BASE], associated, made.file[start : start + length], part)


def heights(suite):
    for name, sizes, comment in (
        ("one-node", {"items_per_block": 2, "blocks_per_node": 100}, "one node"),
        ("one-block-per-node", {"items_per_block": 2, "blocks_per_node": 1}, "a node for each block"),
        ("one-item-per-node", {"items_per_block": 1, "blocks_per_node": 1}, "a node and a block for each item"),
        ("five-blocks-flat", {"items_per_block": 2, "blocks_per_node": None}, "five blocks and no nodes"),
    ):
        suite.resealed(
            f"ok-index-{name}",
            f"an index of {comment}: a reader accepts it",
            "nodes",
            f.OK,
            change=lambda d, sizes=sizes: d["base"].update(sizes),
        )
    for name, height, comment in (
        ("height-0", 0, "height 0 over nodes, which are read as blocks"),
        ("height-2", 2, "height 2 over nodes"),
        ("height-255", 255, "height 255 over nodes"),
    ):
        suite.resealed(f"index-{name}", comment, "nodes", TAMPERED, {"root": number(HEIGHT, "B", height)})
    made = suite.made["nodes"]
    blocks = plain(suite, "nodes", "node 0") + plain(suite, "nodes", "node 1") + plain(suite, "nodes", "node 2")
    at = fields_end(suite)
    flat = each(number(HEIGHT, "B", 0), number(BLOCKS, "I", 5), lambda value: value[:at] + blocks)
    suite.resealed(
        "index-nodes-unused",
        "a root that names the blocks itself, before nodes that nothing names",
        "nodes",
        TAMPERED,
        {"root": flat},
    )
    first = p.Entry(*entry_of(plain(suite, "nodes", "root")[at:]).first, *made.parts["node 0"], 4, bytes(16))
    suite.resealed(
        "index-node-as-block-0",
        "a root of height 0 with a node in place of a block",
        "nodes",
        TAMPERED,
        {"root": each(flat, patch(at, first.encode()[: ENTRY - 16]))},
    )


def fields_end(suite):
    """Where the entries begin in the root of the vault `nodes`, which has a history limit."""
    assert entry_of(plain(suite, "nodes", "root")[ENTRIES:]).offset == suite.place("nodes", "node 0")
    return ENTRIES


def entry_of(data):
    return p.Entry(*p.ENTRY.unpack(data[:ENTRY]))


def nodes(suite):
    """Faults within a node."""
    for name, offset in (("label", 0), ("file-id", 11), ("offset", 27)):
        suite.resealed(
            f"node-sealed-under-another-{name}",
            f"a node is sealed under another {name.replace('-', ' ')}",
            "nodes",
            TAMPERED,
            {"node 1 associated data": flip(offset)},
        )
    block = p.part_associated(b"block", suite.made["nodes"].file_id, suite.place("nodes", "node 1"))
    suite.resealed(
        "node-sealed-as-block",
        "a node is sealed as a block",
        "nodes",
        TAMPERED,
        {"node 1 associated data": constant(block)},
    )
    second = ENTRY
    faults = {
        "empty": ("a node of no entries", constant(b"")),
        "something-follows": ("a byte after the entries", following(b"\0")),
        "entry-follows": ("56 bytes of zeros after the entries", following(bytes(ENTRY))),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "first-cut-short": ("the first byte is missing", lambda value: value[1:]),
        "entry-missing": ("the second entry is missing", lambda value: value[:ENTRY]),
        "entry-first-missing": ("the first entry is missing", lambda value: value[ENTRY:]),
        "entries-exchanged": ("the two entries exchanged", lambda value: value[ENTRY:] + value[:ENTRY]),
        "entry-twice": ("one block twice", lambda value: value[:ENTRY] * 2),
        "padded": ("a node that is padded as values are", f.pad),
        "first-id": ("a first lookup id that is not the first block's", flip(FIRST_ID)),
        "first-sequence": ("a first sequence that is not the first block's", plus(FIRST_SEQUENCE, "Q", 1)),
        "second-first-id": ("a first lookup id that is not the second block's", flip(second + 15)),
        "second-first-sequence": (
            "a first sequence that is not the second block's",
            plus(second + FIRST_SEQUENCE, "Q", 1),
        ),
        "second-first-sequence-2-62": (
            "a first sequence of 2^62",
            number(second + FIRST_SEQUENCE, "Q", 1 << 62),
        ),
        "block-offset-one-more": ("a block a byte later", plus(second + OFFSET, "Q", 1)),
        "block-offset-one-less": ("a block a byte earlier", plus(second + OFFSET, "Q", -1)),
        "block-offset-most": ("the highest offset of a block", number(second + OFFSET, "Q", (1 << 64) - 1)),
        "block-length-one-more": ("a block a byte longer", plus(second + LENGTH, "I", 1)),
        "block-length-one-less": ("a block a byte shorter", plus(second + LENGTH, "I", -1)),
        "block-length-40": ("a block of no plaintext", number(second + LENGTH, "I", 40)),
        "block-length-above-1-mib": ("a block of more than 1 MiB", number(second + LENGTH, "I", (1 << 20) + 41)),
        "block-tag": ("a tag that is not the block's", flip(second + TAG)),
        "block-tag-last-byte": ("a tag of which the last byte is not the block's", flip(second + TAG + 15)),
        "counts-moved": (
            "an item more in one block and one less in the other",
            each(plus(COUNT, "I", 1), plus(second + COUNT, "I", -1)),
        ),
        "count-one-more": ("an item more than the node has", plus(second + COUNT, "I", 1)),
        "count-one-less": ("an item less than the node has", plus(second + COUNT, "I", -1)),
        "count-zero": (
            "no items in one block, and all of the node in the other",
            each(number(second + COUNT, "I", 0), plus(COUNT, "I", 2)),
        ),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"node-{name}", comment + ", in a node", "nodes", TAMPERED, {"node 1": fault})
    sums = {
        "one-more": ("an item more in a block, in its node and in the root", 1),
        "one-less": ("an item less in a block, in its node and in the root", -1),
    }
    for name, (comment, difference) in sums.items():
        at = ENTRIES + ENTRY + COUNT
        suite.resealed(
            f"node-items-{name}-everywhere",
            comment,
            "nodes",
            TAMPERED,
            {
                "node 1": plus(second + COUNT, "I", difference),
                "root": each(plus(at, "I", difference), plus(ITEMS, "Q", difference)),
            },
        )


def named_nodes(suite):
    """What the root says of a node that is right itself."""
    faults = {}
    for index in (0, 1, 2):
        at, node = ENTRIES + ENTRY * index, f"node {index}"
        faults |= {
            f"{index}-first-id": (f"a first lookup id that is not that of {node}", flip(at + FIRST_ID + 15)),
            f"{index}-first-sequence": (
                f"a first sequence that is not that of {node}",
                plus(at + FIRST_SEQUENCE, "Q", 1),
            ),
            f"{index}-offset-one-more": (f"{node} a byte later", plus(at + OFFSET, "Q", 1)),
            f"{index}-offset-one-less": (f"{node} a byte earlier", plus(at + OFFSET, "Q", -1)),
            f"{index}-beyond-root": (
                f"{node} in the place of the root, and longer",
                number(at + OFFSET, "Q", suite.end("nodes", "root") - ENTRY),
            ),
            f"{index}-offset-zero": (f"{node} at 0", number(at + OFFSET, "Q", 0)),
            f"{index}-offset-most": (f"the highest offset of {node}", number(at + OFFSET, "Q", (1 << 64) - 1)),
            f"{index}-length-one-more": (f"{node} a byte longer", plus(at + LENGTH, "I", 1)),
            f"{index}-length-one-less": (f"{node} a byte shorter", plus(at + LENGTH, "I", -1)),
            f"{index}-length-40": (f"{node} without an entry", number(at + LENGTH, "I", 40)),
            f"{index}-length-above-1-mib": (
                f"{node} of more than 1 MiB",
                number(at + LENGTH, "I", (1 << 20) + 41),
            ),
            f"{index}-tag": (f"a tag that is not that of {node}", flip(at + TAG)),
            f"{index}-tag-last-byte": (f"a tag of which the last byte is not that of {node}", flip(at + TAG + 15)),
            f"{index}-count-one-more": (
                f"an item more in {node}",
                each(plus(at + COUNT, "I", 1), plus(ITEMS, "Q", 1)),
            ),
            f"{index}-count-one-less": (
                f"an item less in {node}",
                each(plus(at + COUNT, "I", -1), plus(ITEMS, "Q", -1)),
            ),
        }
    faults |= {
        "counts-moved": (
            "an item more in one node and one less in another",
            each(plus(ENTRIES + COUNT, "I", 1), plus(ENTRIES + ENTRY + COUNT, "I", -1)),
        ),
        "count-zero": (
            "no items in the last node",
            each(number(ENTRIES + 2 * ENTRY + COUNT, "I", 0), plus(ITEMS, "Q", -2)),
        ),
        "items": ("an item more than the nodes contain", plus(ITEMS, "Q", 1)),
        "entries-exchanged": (
            "the entries of two nodes exchanged",
            lambda value: value[:ENTRIES]
            + value[ENTRIES + ENTRY : ENTRIES + 2 * ENTRY]
            + value[ENTRIES : ENTRIES + ENTRY]
            + value[ENTRIES + 2 * ENTRY :],
        ),
        "last-missing": (
            "the last node is not named",
            each(number(BLOCKS, "I", 2), plus(ITEMS, "Q", -2), lambda value: value[:-ENTRY]),
        ),
        "first-missing": (
            "the first node is not named",
            each(
                number(BLOCKS, "I", 2),
                plus(ITEMS, "Q", -4),
                lambda value: value[:ENTRIES] + value[ENTRIES + ENTRY :],
            ),
        ),
        "none": (
            "no node is named",
            each(number(BLOCKS, "I", 0), number(ITEMS, "Q", 0), lambda value: value[:ENTRIES]),
        ),
        "same-offset": (
            "two nodes of one place",
            lambda value: patch(ENTRIES + ENTRY + OFFSET, value[ENTRIES + OFFSET : ENTRIES + ENTRY])(value),
        ),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"index-node-{name}", comment, "nodes", TAMPERED, {"root": fault})


def arrangement(suite):
    """Where nodes are, and that they do not overlap."""
    made = suite.made["nodes"]
    for part in ("block 0", "block 2 value 0", "node 0", "node 1", "node 2", "recent", "root"):
        suite.resealed(
            f"index-gap-before-{part.replace(' ', '-')}",
            f"a byte before {part}, which all offsets include",
            "nodes",
            TAMPERED,
            {f"gap before {part}": constant(b"\0")},
        )
    (first, length), (second, other) = made.parts["node 0"], made.parts["node 1"]
    assert length == other
    swap = lambda file: (
        file[:first] + file[second : second + length] + file[first : first + length] + file[second + length :]
    )
    suite.damage(
        "nodes-swapped",
        "the bytes of two nodes exchanged",
        "nodes",
        TAMPERED,
        (first, 2 * length, made.file[second : second + length] + made.file[first : first + length]),
    )
    at = ENTRIES + OFFSET
    suite.resealed(
        "nodes-in-other-order",
        "two nodes in the other order in the file, sealed and named in their places",
        "nodes",
        TAMPERED,
        {
            "node 0 associated data": constant(p.part_associated(b"node", made.file_id, second)),
            "node 1 associated data": constant(p.part_associated(b"node", made.file_id, first)),
            "root": each(number(at, "Q", second), number(at + ENTRY, "Q", first)),
        },
        after=lambda made: swap(made.file),
    )
    suite.resealed(
        "ok-index-another-file-id",
        "the same vault in another file",
        "nodes",
        f.OK,
        change=lambda d: d.update(file_id=bytes(range(16)).hex()),
    )
    for part in ("node 1", "recent"):
        start, size = made.parts[part]
        suite.resealed(
            f"{part.replace(' ', '-')}-from-another-file",
            f"{part} is from another file of the same vault",
            "nodes",
            TAMPERED,
            after=lambda other, start=start, size=size: made.file[:start]
            + other.file[start : start + size]
            + made.file[start + size :],
            change=lambda d: d.update(file_id=bytes(range(16)).hex()),
        )
    overlapping = plain(suite, "nodes", "node 0")[ENTRY:]
    alone = plain(suite, "nodes", "node 1")[ENTRY:]
    entry, node = entry_of(overlapping), ENTRIES + ENTRY
    again = each(
        patch(node + FIRST_ID, entry.first_id),
        number(node + FIRST_SEQUENCE, "Q", entry.first_sequence),
    )
    suite.resealed(
        "nodes-overlap",
        "the last block of a node is the first of the next one, in place of another block",
        "nodes",
        TAMPERED,
        {"node 1": constant(overlapping + alone), "root": again},
    )
    two = entry_of(plain(suite, "nodes", "node 1"))
    suite.resealed(
        "node-block-in-two-nodes",
        "the first block of a node is also the last of the node before, all sums right",
        "nodes",
        TAMPERED,
        {
            "node 0": lambda value: value[:ENTRY] + two.encode(),
        },
    )
    # A block of one node and the next in the other order: each node ascends, and the whole does not.
    blocks = [plain(suite, "nodes", "node 0")[:ENTRY], overlapping, plain(suite, "nodes", "node 1")[:ENTRY], alone]
    suite.resealed(
        "nodes-interleaved",
        "two nodes that each have a block of the other: the first one's last block is after the second one's first",
        "nodes",
        TAMPERED,
        {
            "node 0": constant(blocks[0] + blocks[2]),
            "node 1": constant(blocks[1] + blocks[3]),
            "root": again,
        },
    )
    descending = lambda items: [*items[:4], *items[6:8], *items[4:6], *items[8:]]
    suite.resealed(
        "index-items-descend-in-node",
        "the items of two blocks of a node exchanged",
        "nodes",
        TAMPERED,
        {"base items": descending},
    )
    across = lambda items: [*items[:2], *items[4:6], *items[2:4], *items[6:]]
    suite.resealed(
        "index-items-descend-across-nodes",
        "the items of the last block of a node and the first of the next exchanged",
        "nodes",
        TAMPERED,
        {"base items": across},
    )
    suite.resealed(
        "ok-index-without-recent",
        "an index of two levels without recent changes",
        "nodes",
        f.OK,
        change=lambda d: [d["base"].pop(name) for name in ("recent", "floor")],
    )
    end = suite.end("nodes", "node 2")
    suite.truncated("truncated-index-after-nodes", "the file ends after its nodes", "nodes", TAMPERED, end)


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
    first = lambda d: d["base"].update(recent=pairs(0, 1), floor=0)
    suite.resealed("ok-recent-from-zero", "a floor of 0, and a pair of it", "recent", f.OK, change=first)
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
    for value in (0, 5):
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
