"""The base: blocks, and values with their offsets."""

import vault_format as f
import vault_records as p
from vector_bases import item
from vector_cases_root import BLOCKS
from vector_suite import TAMPERED, constant, each, flip, following, number, patch, plus

# Offsets in an entry of a block's directory, and in an item that is a put.
ID, SEQUENCE, PLACE = 0, 16, 24
VALUE_LENGTH, VALUE_TAG = 17, 21
ENTRY = 28


def add(suite):
    damaged(suite)
    blocks(suite)
    items(suite)
    directories(suite)
    gaps(suite)
    order(suite)


def damaged(suite):
    for part in ("block 0", "block 1", "root"):
        for offset, what in (
            (0, "nonce"),
            (24, "first byte"),
            (-17, "last byte"),
            (-16, "tag"),
            (-1, "end of the tag"),
        ):
            suite.flipped(
                f"{part.replace(' ', '-')}-damaged-{what.replace(' ', '-')}",
                f"damage without a key: the {what} of {'the root' if part == 'root' else part}",
                "small",
                TAMPERED,
                part,
                offset,
            )
    for offset, what in ((0, "nonce"), (24, "first byte"), (-17, "last byte"), (-16, "tag"), (-1, "end of the tag")):
        suite.flipped(
            f"base-value-damaged-{what.replace(' ', '-')}",
            f"damage without a key: the {what} of a value in the base",
            "values",
            TAMPERED,
            "block 0 value 0",
            offset,
        )
    suite.flipped(
        "base-large-value-damaged",
        "damage without a key: the middle of a value of 16 KiB",
        "values",
        TAMPERED,
        "frame 0",
        8000,
    )
    suite.flipped(
        "base-last-block-damaged", "damage without a key: the last of three blocks", "many", TAMPERED, "block 2", 100
    )
    start, end = suite.place("small", "block 0 value 0"), suite.end("small", "block 1")
    middle = suite.end("small", "block 0")
    data = suite.made["small"].file
    if end - middle == middle - start:
        suite.damage(
            "blocks-exchanged",
            "the two blocks, each with its values, exchanged",
            "small",
            TAMPERED,
            (start, end - start, data[middle:end] + data[start:middle]),
        )
    first, second = (suite.made["small"].parts[f"block 0 value {n}"] for n in (0, 1))
    assert first[1] == second[1]
    values = data[second[0] : sum(second)] + data[first[0] : sum(first)]
    suite.damage(
        "base-values-swapped",
        "two values of the base exchanged",
        "small",
        TAMPERED,
        (first[0], len(values), values),
    )


def blocks(suite):
    for name, offset in (("label", 0), ("file-id", 12), ("offset", 28)):
        suite.resealed(
            f"block-sealed-under-another-{name}",
            f"a block is sealed under another {name.replace('-', ' ')}",
            "small",
            TAMPERED,
            {"block 1 associated data": flip(offset)},
        )
    for index in (0, 1):
        block = f"block {index}"
        suite.resealed(
            f"block-{index}-something-follows",
            f"a byte after the items of block {index}",
            "small",
            TAMPERED,
            {block: following(b"\0")},
        )
        suite.resealed(
            f"block-{index}-cut-short",
            f"the last byte of block {index} is missing",
            "small",
            TAMPERED,
            {block: lambda value: value[:-1]},
        )
        suite.resealed(f"block-{index}-empty", f"block {index} is empty", "small", TAMPERED, {block: constant(b"")})
        suite.resealed(
            f"block-{index}-padded", f"block {index} is padded as values are", "small", TAMPERED, {block: f.pad}
        )

    made = suite.made["created"]
    offset = suite.place("created", "root")
    associated = p.part_associated(b"block", made.file_id, offset)
    empty = f.seal(made.sealer.keys[f.BASE], bytes(24), associated, b"")
    entry = p.Entry(bytes(16), 0, offset, len(empty), 0, f.tag(empty)).encode()
    suite.resealed(
        "block-without-items",
        "a sealed block without items, and an entry that agrees",
        "created",
        TAMPERED,
        {"gap before root": constant(empty), "root": each(number(BLOCKS, "I", 1), following(entry))},
    )
    large = suite.made["largest-block"]
    key, described = large.lookup_key, large.description["base"]["items"]
    last = max(range(len(described)), key=lambda n: p.lookup_id(key, described[n]["service"], described[n]["account"]))
    suite.resealed(
        "block-above-1-mib",
        "a block four bytes longer than 1 MiB: its last item has an empty label",
        "largest-block",
        TAMPERED,
        change=lambda d: d["base"]["items"][last].update(label=""),
    )


def items(suite):
    """The offset and the length of a value."""
    places = {
        "offset-one-more": ("a value a byte later", plus(-8, "Q", 1)),
        "offset-one-less": ("a value a byte earlier", plus(-8, "Q", -1)),
        "offset-zero": ("a value at 0", number(-8, "Q", 0)),
        "offset-most": ("the highest offset", number(-8, "Q", (1 << 64) - 1)),
        "offset-in-tail": ("a value in the tail", number(-8, "Q", suite.place("small", "frame 3", -72))),
        "length-one-more": ("a value a byte longer", plus(VALUE_LENGTH, "I", 1)),
        "length-one-less": ("a value a byte shorter", plus(VALUE_LENGTH, "I", -1)),
        "length-zero": ("a value of no bytes", number(VALUE_LENGTH, "I", 0)),
        "length-71": ("a seal of 71 bytes", number(VALUE_LENGTH, "I", 71)),
        "length-16-mib": (
            "the longest allowed seal, in a file without such a value",
            number(VALUE_LENGTH, "I", 16_777_288),
        ),
        "length-above-16-mib": ("a seal that is longer than allowed", number(VALUE_LENGTH, "I", 16_777_289)),
        "length-most": ("the highest length", number(VALUE_LENGTH, "I", 0xFFFFFFFF)),
        "without-place": ("a value without its place", lambda value: value[:-8]),
        "place-cut": ("a place of seven bytes", lambda value: value[:-1]),
        "length-73": ("a seal of 73 bytes", number(VALUE_LENGTH, "I", 73)),
        "length-104": ("a value 32 bytes longer, into its block", number(VALUE_LENGTH, "I", 104)),
    }
    for name, (comment, fault) in places.items():
        suite.resealed(f"item-{name}", comment, "small", TAMPERED, {"block 1 item 0": fault})
        # The first item was replaced in the tail, where a lookup finds it. The other one was not.
        suite.resealed(f"shown-item-{name}", f"{comment}, present", "small", TAMPERED, {"block 1 item 1": fault})
    start, length = suite.made["small"].parts["block 0 value 1"]
    copied = suite.made["small"].file[start : start + length]
    suite.resealed(
        "shown-item-value-after-block",
        "a value after its block",
        "small",
        TAMPERED,
        {"block 0 item 1": number(-8, "Q", suite.end("small", "block 0")), "gap before block 1 value 0": constant(copied)},
    )
    for name, comment, fault in (
        ("sequence", "a sequence under which the value was not sealed", flip(SEQUENCE)),
        ("sequence-above-root", "a sequence above the root's", number(SEQUENCE, "Q", 11)),
        ("sequence-2-62", "a sequence of 2^62", number(SEQUENCE, "Q", 1 << 62)),
    ):
        suite.resealed(f"item-{name}", comment, "small", TAMPERED, {"block 1 entry 0": fault})
    suite.resealed(
        "item-newer-than-root",
        "an item with a sequence above the root's, under which its value is sealed",
        "created",
        TAMPERED,
        change=lambda d: d.update(base={"sequence": 1, "items": [item("one", "1", sequence=2)]}),
    )
    suite.resealed(
        "ok-item-as-new-as-root",
        "an item with the sequence of the root",
        "created",
        f.OK,
        change=lambda d: d.update(base={"sequence": 1, "items": [item("one", "1", sequence=1)]}),
    )
    suite.resealed(
        "ok-items-of-one-sequence",
        "two items with the same sequence",
        "created",
        f.OK,
        change=lambda d: d.update(
            base={"sequence": 1, "items": [item("one", "1", sequence=1), item("two", "2", sequence=1)]}
        ),
        reading="Items of the base need not have different sequences.",
    )
    suite.resealed(
        "item-sequence-zero",
        "an item of sequence 0",
        "created",
        TAMPERED,
        change=lambda d: d.update(base={"sequence": 1, "items": [item("one", "1", sequence=0)]}),
    )
    suite.resealed(
        "ok-one-item-per-block",
        "a block for each item: a reader accepts short blocks",
        "created",
        f.OK,
        change=lambda d: d.update(
            base={"sequence": 4, "items_per_block": 1, "items": [item(str(n), str(n)) for n in range(3)]}
        ),
    )
    suite.resealed(
        "item-values-exchanged",
        "two items with the offset and the tag of the other item's value",
        "small",
        TAMPERED,
        {"block 0 item 0": exchanged(suite, 1), "block 0 item 1": exchanged(suite, 0)},
    )
    suite.resealed(
        "item-values-in-other-order",
        "the values of a block in another order than its items, with matching offsets",
        "small",
        TAMPERED,
        {"block 0 item 0": placed(suite, 1), "block 0 item 1": placed(suite, 0)},
        after=lambda made: swapped(made),
    )
    old = suite.made["small"]
    start, length = old.parts["block 0 value 1"]
    suite.resealed(
        "item-value-of-another",
        "an item with the sealed value and the tag of another item",
        "small",
        TAMPERED,
        {f"base item {base_index(suite, 0)} sealed value": constant(old.file[start : start + length])},
    )


def base_index(suite, place):
    """The index in the description of the item at this position of block 0."""
    made = suite.made["small"]
    described = made.description["base"]["items"]
    key = made.lookup_key
    order = sorted(
        range(len(described)), key=lambda n: p.lookup_id(key, described[n]["service"], described[n]["account"])
    )
    return order[place]


def exchanged(suite, other):
    """Replaces the offset, length and tag of an item's value by those of the other value of block 0."""
    made = suite.made["small"]
    start, length = made.parts[f"block 0 value {other}"]
    tag = made.file[start + length - 16 : start + length]
    return lambda value: patch(VALUE_TAG, tag)(value[:-8] + p.PLACE.pack(start))


def placed(suite, other):
    start, _ = suite.made["small"].parts[f"block 0 value {other}"]
    return lambda value: value[:-8] + p.PLACE.pack(start)


def swapped(made):
    (first, length), (second, _) = made.parts["block 0 value 0"], made.parts["block 0 value 1"]
    file = made.file
    return file[:first] + file[second : second + length] + file[first : first + length] + file[second + length :]


def directories(suite):
    """The directory of a block: faults in the entry of its second item."""
    entry, block = "block 1 entry 1", "block 1"
    size = p.DIRECTORY_ENTRY.size * 2
    faults = {
        "place-one-more": ("an item a byte later", plus(PLACE, "I", 1)),
        "place-one-less": ("an item a byte earlier", plus(PLACE, "I", -1)),
        "place-zero": ("an item at 0, where the directory is", number(PLACE, "I", 0)),
        "place-in-directory": ("an item in the directory", number(PLACE, "I", ENTRY)),
        "place-of-first": ("an item in the place of the one before", number(PLACE, "I", size)),
        "place-most": ("the highest place", number(PLACE, "I", 0xFFFFFFFF)),
        "place-beyond-block": ("an item after the end of the block", number(PLACE, "I", 4096)),
        "id": ("a lookup id that is not the item's", flip(ID)),
        "id-last-byte": ("a lookup id of which the last byte is not the item's", flip(ID + 15)),
        "sequence": ("a sequence that is not the item's", flip(SEQUENCE)),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"directory-{name}", comment, "small", TAMPERED, {entry: fault})
    first = {
        "place-one-more": ("the first item a byte later", plus(PLACE, "I", 1)),
        "place-one-less": ("the first item a byte earlier", plus(PLACE, "I", -1)),
        "place-zero": ("the first item at 0", number(PLACE, "I", 0)),
        "id": ("the first item's lookup id is another", flip(ID)),
    }
    for name, (comment, fault) in first.items():
        suite.resealed(f"directory-first-{name}", comment, "small", TAMPERED, {"block 1 entry 0": fault})
    later = {f"block 1 entry {number}": plus(PLACE, "I", 1) for number in (0, 1)}
    whole = {
        "gap-after": (
            "a byte between the directory and the items, which their places include",
            {**later, block: lambda value: value[:size] + b"\0" + value[size:]},
        ),
        "gap-between-items": (
            "a byte between two items, which the later one's place includes",
            {entry: plus(PLACE, "I", 1), "block 1 item 0": following(b"\0")},
        ),
        "exchanged": (
            "the two entries of a directory exchanged",
            {block: lambda value: value[ENTRY:size] + value[:ENTRY] + value[size:]},
        ),
        "places-exchanged": (
            "the two entries of a directory with each other's places",
            {block: lambda value: with_places(value, value[ENTRY + PLACE : size], value[PLACE:ENTRY])},
        ),
        "items-exchanged": (
            "the items of a block in another order than its directory, with matching places",
            {block: other_order},
        ),
        "entry-twice": (
            "the first entry twice, over one item",
            {block: lambda value: value[:ENTRY] * 2 + value[size:]},
        ),
        "alone": ("a block that is only a directory", {block: lambda value: value[:size]}),
        "cut": ("a block that is only the half of a directory", {block: lambda value: value[: ENTRY + PLACE]}),
        "missing": ("a block without a directory", {block: lambda value: value[size:]}),
    }
    for name, (comment, faults) in whole.items():
        suite.resealed(f"directory-{name}", comment, "small", TAMPERED, faults)


def with_places(block, first, second):
    return block[:PLACE] + first + block[ENTRY : ENTRY + PLACE] + second + block[2 * ENTRY :]


def other_order(block):
    """A block of two items with the second item before the first."""
    at = int.from_bytes(block[ENTRY + PLACE : 2 * ENTRY], "little")
    first, second = block[2 * ENTRY : at], block[at:]
    places = p.LENGTH.pack(2 * ENTRY + len(second)), p.LENGTH.pack(2 * ENTRY)
    return with_places(block[: 2 * ENTRY], *places) + second + first


def gaps(suite):
    """Bytes between the parts, which move all later parts."""
    for part in ("block 0 value 0", "block 0 value 1", "block 0", "block 1 value 0", "block 1", "root"):
        suite.resealed(
            f"gap-before-{part.replace(' ', '-')}",
            f"a byte before {'the root' if part == 'root' else part}, which all offsets include",
            "small",
            TAMPERED,
            {f"gap before {part}": constant(b"\0")},
        )
    suite.resealed(
        "gap-before-root-created",
        "a page of zeros before the root of an empty base",
        "created",
        TAMPERED,
        {"gap before root": constant(bytes(4096))},
    )
    suite.resealed(
        "gap-before-frame",
        "a byte between the base and the first frame",
        "small",
        TAMPERED,
        {"gap before frame 0": constant(b"\0")},
    )


def order(suite):
    suite.resealed(
        "items-descend",
        "the items of the base in descending order",
        "small",
        TAMPERED,
        {"base items": lambda items: items[::-1]},
    )
    suite.resealed(
        "items-exchanged-in-block",
        "the two items of the first block exchanged",
        "small",
        TAMPERED,
        {"base items": lambda items: [items[1], items[0], *items[2:]]},
    )
    suite.resealed(
        "items-exchanged-across-blocks",
        "the last item of one block and the first of the next exchanged",
        "small",
        TAMPERED,
        {"base items": lambda items: [items[0], items[2], items[1], items[3]]},
    )
    suite.resealed(
        "item-twice-in-block",
        "an item twice in one block",
        "small",
        TAMPERED,
        {"base items": lambda items: [items[0], items[0], items[1], items[2]]},
    )
    suite.resealed(
        "item-twice-across-blocks",
        "an item at the end of one block and at the beginning of the next",
        "small",
        TAMPERED,
        {"base items": lambda items: [items[0], items[1], items[1], items[2]]},
    )
