"""Frames: headers, the chain and seals. Faults in metadata are in vector_cases_contents.py."""

import struct

import vault_format as f
from vector_bases import put, remove
from vector_suite import TAMPERED, constant, each, flip, following, number, plus

# Offsets in the header of a frame.
LENGTH, KIND, RESERVED, SEQUENCE, M, V = 0, 4, 5, 8, 16, 20
METADATA_AD = {"file id": 0, "offset": 16, "header": 24, "previous tag": 48}


def add(suite):
    damaged(suite)
    headers(suite)
    sequences(suite)
    chain(suite)
    padding(suite)
    removes(suite)
    swaps(suite)


def damaged(suite):
    m = int.from_bytes(frame(suite, 0)[M : M + 4], "little")
    places = {
        "length": (0, 1, "the length"),
        "length-high": (3, 1, "the last byte of the length"),
        "kind": (4, 1, "the kind"),
        "reserved": (5, 1, "the first reserved byte"),
        "reserved-last": (7, 1, "the last reserved byte"),
        "sequence": (8, 1, "the sequence"),
        "sequence-high": (15, 1, "the last byte of the sequence"),
        "m": (16, 1, "m"),
        "m-by-32": (16, 32, "m, by 32"),
        "v": (20, 1, "v"),
        "v-by-32": (20, 32, "v, by 32"),
        "v-high": (23, 128, "the highest bit of v"),
        "nonce": (24, 1, "the nonce of the metadata"),
        "metadata": (48, 1, "the metadata"),
        "metadata-end": (47 + m, 1, "the last byte of the metadata"),
        "tag": (48 + m, 1, "the tag of the metadata"),
        "tag-end": (63 + m, 1, "the last byte of the tag of the metadata"),
        "value-nonce": (64 + m, 1, "the nonce of the value"),
        "value": (88 + m, 1, "the value"),
        "value-tag": (-16, 1, "the tag of the value"),
        "value-tag-end": (-1, 1, "the last byte of the tag of the value"),
    }
    for name, (offset, mask, what) in places.items():
        suite.flipped(
            f"frame-damaged-{name}",
            f"damage without a key: {what} of the first frame",
            "small",
            TAMPERED,
            "frame 0",
            offset,
            mask,
        )
    for index in (1, 2, 3):
        suite.flipped(
            f"frame-{index}-damaged",
            f"damage without a key: the metadata of frame {index}",
            "small",
            TAMPERED,
            f"frame {index}",
            50,
        )
    suite.flipped(
        "frame-3-damaged-value", "damage without a key: the value of the last frame", "small", TAMPERED, "frame 3", -30
    )
    suite.overwritten("frame-zeros", "a frame of zeros", "small", TAMPERED, "frame 3", 0, bytes(len(frame(suite, 3))))


def frame(suite, index, base="small"):
    made = suite.made[base]
    start, length = made.parts[f"frame {index}"]
    return made.file[start : start + length]


def headers(suite):
    """Faults in the header of the last frame, a put, under valid seals."""
    faults = {
        "kind-0": ("kind 0", number(KIND, "B", 0)),
        "kind-2": ("a put whose kind is remove", number(KIND, "B", 2)),
        "kind-3": ("kind 3", number(KIND, "B", 3)),
        "kind-129": ("kind 129", number(KIND, "B", 129)),
        "kind-255": ("kind 255", number(KIND, "B", 255)),
        "kind-2-without-value": (
            "a put whose kind is remove, without a value",
            each(number(KIND, "B", 2), number(V, "I", 0), plus(LENGTH, "I", -72)),
        ),
        "reserved-5": ("the first reserved byte", flip(5)),
        "reserved-6": ("the second reserved byte", flip(6)),
        "reserved-7": ("the third reserved byte", flip(7, 128)),
        "sequence-one-more": ("a sequence that skips one", plus(SEQUENCE, "Q", 1)),
        "sequence-one-less": ("the sequence of the frame before", plus(SEQUENCE, "Q", -1)),
        "sequence-zero": ("sequence 0", number(SEQUENCE, "Q", 0)),
        "length-one-more": ("a length that is one more than m and v require", plus(LENGTH, "I", 1)),
        "length-one-less": ("a length that is one less than m and v require", plus(LENGTH, "I", -1)),
        "length-zero": ("length 0", number(LENGTH, "I", 0)),
        "length-24": ("length 24", number(LENGTH, "I", 24)),
        "length-most": ("the highest length", number(LENGTH, "I", 0xFFFFFFFF)),
        "m-zero": ("m is 0", number(M, "I", 0)),
        "m-less": ("m is 32 less", plus(M, "I", -32)),
        "m-most": ("the highest m", number(M, "I", 0xFFFFFFFF)),
        "m-and-v-exchanged-in-part": (
            "m is 32 more and v 32 less, so that the length is right",
            each(plus(M, "I", 32), plus(V, "I", -32)),
        ),
        "m-less-v-more": (
            "m is 32 less and v 32 more, so that the length is right",
            each(plus(M, "I", -32), plus(V, "I", 32)),
        ),
        "v-zero": ("v is 0", number(V, "I", 0)),
        "v-more": ("v is 32 more", plus(V, "I", 32)),
        "v-one-more-length-too": ("v is 33, and the length agrees", each(plus(V, "I", 1), plus(LENGTH, "I", 1))),
        "v-most": ("the highest v", number(V, "I", 0xFFFFFFFF)),
        "v-wraps": ("m and v wrap around to the right length in 32 bits", each(plus(M, "I", 64), plus(V, "I", -64))),
        "v-16-mib-and-32": (
            "the highest allowed v, in a file without such a value",
            each(number(V, "I", 16_777_248), plus(LENGTH, "I", 16_777_248 - 32)),
        ),
        "v-16-mib-and-64": (
            "a v of 16 MiB and 64",
            each(number(V, "I", 16_777_280), plus(LENGTH, "I", 16_777_280 - 32)),
        ),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"frame-{name}", comment, "small", TAMPERED, {"frame 3 header": fault})
    suite.resealed(
        "frame-kind-1-for-remove",
        "a remove whose kind is put",
        "small",
        TAMPERED,
        {"frame 2 header": number(KIND, "B", 1)},
    )
    for kind in (0, 3, 130):
        suite.resealed(
            f"frame-kind-{kind}-for-remove",
            f"kind {kind} in a frame that is otherwise a remove",
            "small",
            TAMPERED,
            {"frame 2 header": number(KIND, "B", kind)},
        )
    suite.resealed(
        "frame-remove-with-v",
        "a remove with a v of 32, and no value",
        "small",
        TAMPERED,
        {"frame 2 header": number(V, "I", 32)},
    )
    suite.resealed(
        "frame-of-23-bytes",
        "23 bytes after the last frame, within the end",
        "small",
        TAMPERED,
        {"commit slot 1 state": plus(8, "Q", 23)},
        after=lambda made: made.file + bytes(23),
    )
    suite.resealed(
        "frame-of-zeros-within-end",
        "a frame of zeros after the last one, within the end",
        "small",
        TAMPERED,
        {"commit slot 1 state": plus(8, "Q", 168)},
        after=lambda made: made.file + bytes(168),
    )


def sequences(suite):
    def everywhere(index, new):
        """Changes all copies of a frame's sequence."""
        part = f"frame {index}"
        return {
            f"{part} header": number(SEQUENCE, "Q", new),
            f"{part} metadata": number(16, "Q", new),
            f"{part} value associated data": number(32, "Q", new),
        }

    last = suite.made["small"].sequence
    for name, new in (("gap", last + 1), ("repeated", last - 1)):
        suite.resealed(
            f"frame-sequence-{name}-everywhere",
            f"a sequence {name} at the last frame, in all its copies",
            "small",
            TAMPERED,
            {**everywhere(3, new), "commit slot 1 state": number(0, "Q", new + (name == "repeated"))},
        )
    one = lambda d: d.update(tail=[[put("one", "1")]])
    suite.resealed(
        "frame-first-sequence-gap",
        "the first frame is two after the root",
        "created",
        TAMPERED,
        {**everywhere(0, 3), "commit slot 1 state": number(0, "Q", 3)},
        change=one,
    )
    suite.resealed(
        "frame-first-sequence-is-roots",
        "the first frame has the root's sequence",
        "created",
        TAMPERED,
        {**everywhere(0, 1), "commit slot 1 state": number(0, "Q", 2)},
        change=one,
    )
    suite.resealed(
        "frame-sequence-wraps",
        "the root has the highest sequence, and the first frame has sequence 0",
        "created",
        TAMPERED,
        {
            **everywhere(0, 0),
            "root index": number(0, "Q", (1 << 64) - 1),
            "commit slot 0 state": number(0, "Q", 0),
            "commit slot 1 state": number(0, "Q", (1 << 64) - 1),
        },
        change=one,
    )


def chain(suite):
    for what, offset in METADATA_AD.items():
        name = what.replace(" ", "-")
        suite.resealed(
            f"frame-sealed-under-another-{name}",
            f"a frame's metadata is sealed under another {what}",
            "small",
            TAMPERED,
            {"frame 1 metadata associated data": flip(offset)},
        )
    root = suite.made["small"].states[1].root_tag
    suite.resealed(
        "frame-chained-to-root",
        "the last frame is chained to the root",
        "small",
        TAMPERED,
        {"frame 3 previous tag": constant(root)},
    )
    suite.resealed(
        "frame-chained-to-frame-before-last",
        "the last frame is chained to the frame before the previous one",
        "small",
        TAMPERED,
        {"frame 3 previous tag": constant(tag_of(suite, 1))},
    )
    suite.resealed(
        "frame-first-chained-to-zeros",
        "the first frame is chained to zeros",
        "small",
        TAMPERED,
        {"frame 0 previous tag": constant(bytes(16))},
    )
    start, end = suite.place("small", "frame 0"), suite.end("small", "frame 3")
    frames = [frame(suite, index) for index in range(4)]

    def rearranged(name, comment, *order):
        data = b"".join(frames[index] if isinstance(index, int) else index for index in order)
        suite.damage(name, comment, "small", TAMPERED, (start, end - start, data))

    rearranged("frames-first-and-last-exchanged", "the first and the last frame exchanged", 3, 1, 2, 0)
    rearranged("frames-two-exchanged", "frames 1 and 2 exchanged", 0, 2, 1, 3)
    rearranged(
        "frame-missing", "a frame removed, the rest moved forward, and zeros at the end", 0, 2, 3, bytes(len(frames[1]))
    )
    rearranged("frame-twice", "a frame twice, in place of the next one", 0, 1, 1, 3)
    rearranged("frame-last-is-first", "the first frame in place of the last", 0, 1, 2, 0)
    rearranged("frame-inserted", "a frame inserted, which moves the last frame after the end", 0, 0, 1, 2, 3)
    kept = suite.end("small", "frame 2")
    suite.resealed(
        "frame-last-taken-out",
        "the last frame removed and the end moved, with the same tail tag",
        "small",
        TAMPERED,
        {"commit slot 1 state": number(8, "Q", kept)},
        after=lambda made: made.file[:kept],
    )
    # The same vault, key and nonces in another file: the parts that a copy of the vault could contribute.
    again = {"file_id": bytes(range(16)).hex()}
    suite.resealed(
        "frame-from-another-file",
        "the last frame is from another file of the same vault",
        "small",
        TAMPERED,
        after=lambda made: splice(suite, made, "frame 3"),
        change=lambda d: d.update(again),
    )
    for part, what in (("block 0", "block 0"), ("root", "the root")):
        suite.resealed(
            f"{part.replace(' ', '-')}-from-another-file",
            f"{what} is from another file of the same vault",
            "small",
            TAMPERED,
            after=lambda made, part=part: splice(suite, made, part),
            change=lambda d: d.update(again),
        )


def splice(suite, made, part):
    """Returns the file of the base vault with one part of another file."""
    start, length = made.parts[part]
    assert suite.made["small"].parts[part] == (start, length)
    old = suite.made["small"].file
    return old[:start] + made.file[start : start + length] + old[start + length :]


def tag_of(suite, index):
    data = frame(suite, index)
    m = int.from_bytes(data[M : M + 4], "little")
    return data[48 + m : 64 + m]


def padding(suite):
    for part, what in (("frame 3", "put"), ("frame 2", "remove")):
        faults = {
            "no-80": (
                "no 80 before the zeros",
                lambda padded: padded.rstrip(b"\0")[:-1] + bytes(len(padded) - len(padded.rstrip(b"\0")) + 1),
            ),
            "zeros-last-block": ("a last block of zeros", following(bytes(32))),
            "80-twice": (
                "a second 80, which makes the first 80 metadata",
                lambda padded: padded.rstrip(b"\0") + b"\x80" + bytes(-(len(padded.rstrip(b"\0")) + 1) % 32),
            ),
            "block-more": ("a second block of padding", following(b"\x80" + bytes(31))),
            "31-bytes-more": ("31 bytes more: m is not a multiple of 32", following(bytes(31))),
            "no-multiple": (
                "padding of an 80 only",
                lambda padded: padded.rstrip(b"\0") + b"\0" * (len(padded.rstrip(b"\0")) % 32 == 0),
            ),
            "empty": ("no metadata and no padding: m is 0", constant(b"")),
            "only-padding": ("only padding", constant(f.pad(b""))),
        }
        for name, (comment, fault) in faults.items():
            suite.resealed(
                f"frame-padding-{name}-in-{what}",
                f"{comment}, in a {what}",
                "small",
                TAMPERED,
                {f"{part} padded metadata": fault},
            )
    suite.resealed(
        "frame-m-65568",
        "an m of 65,568",
        "created",
        TAMPERED,
        {"frame 0 padded metadata": lambda padded: bytes(65_568)},
        change=lambda d: d.update(tail=[[put("one", "1")]]),
    )
    sealed = {
        "v-72": ("with a byte after it", lambda sealed: sealed + bytes(1)),
        "empty-seal": ("of no plaintext", lambda sealed: sealed[:24] + sealed[-16:]),
        "no-value": ("of no bytes", lambda sealed: b""),
    }
    for name, (what, fault) in sealed.items():
        suite.resealed(
            f"frame-put-{name}",
            f"a put with a sealed value {what}",
            "small",
            TAMPERED,
            {"frame 3 sealed value": fault},
        )


def removes(suite):
    part = "frame 2 metadata"
    metadata = lambda service, account: each(
        lambda value: identifier(suite, service, account) + text(service) + text(account)
    )
    faults = {
        "something-follows": ("a byte follows", following(b"\0")),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "lookup-id": ("a lookup id of other names", flip(0)),
        "renamed": ("names of another lookup id", flip(-1)),
        "service-empty": ("a service of no bytes", metadata(b"", b"a")),
        "account-empty": ("an account of no bytes", metadata(b"s", b"")),
        "service-1025": ("a service of 1025 bytes", metadata(b"s" * 1025, b"a")),
        "account-1025": ("an account of 1025 bytes", metadata(b"s", b"a" * 1025)),
        "service-nul": ("a NUL in the service", metadata(b"s\0", b"a")),
        "account-not-utf8": ("an account that is not UTF-8", metadata(b"s", b"\xff")),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"remove-{name}", comment + ", in a remove", "small", TAMPERED, {part: fault})

    value = suite.made["small"].file[suite.place("small", "frame 3", -72) : suite.end("small", "frame 3")]
    head = each(number(V, "I", 32), plus(LENGTH, "I", 72))
    suite.resealed(
        "remove-with-value",
        "a remove with a value",
        "small",
        TAMPERED,
        {"frame 1 header": head, "commit slot 1 state": plus(8, "Q", 72)},
        change=lambda d: d.update(tail=[[put("deploy", "x"), remove("old")]]),
        after=lambda made: made.file + value,
    )


def identifier(suite, service, account):
    message = struct.pack("<I", len(service)) + service + struct.pack("<I", len(account)) + account
    return f.blake2b(128, message, suite.made["small"].sealer.keys[f.LOOKUP_IDS])


def text(data):
    return struct.pack("<H", len(data)) + data


def swaps(suite):
    """Values of the same length exchanged, without and with the tags in the metadata."""
    first, last = frame(suite, 0)[-72:], frame(suite, 3)[-72:]
    suite.damage(
        "values-swapped-between-frames",
        "the values of two frames exchanged",
        "small",
        TAMPERED,
        (suite.place("small", "frame 0", -72), 72, last),
        (suite.place("small", "frame 3", -72), 72, first),
    )
    suite.resealed(
        "values-swapped-and-tags",
        "the values of two frames exchanged, with their tags in the metadata",
        "small",
        TAMPERED,
        {"frame 0 sealed value": constant(last), "frame 3 sealed value": constant(first)},
    )
    old = frame(suite, 0, "tail-only")[-72:]
    suite.resealed(
        "value-from-before",
        "the earlier value of a secret in place of the later one, with its tag",
        "tail-only",
        TAMPERED,
        {"frame 1 sealed value": constant(old)},
    )
    again = suite.made["tail-only"].description["tail"][1][2]
    assert again["put"]["account"] == "one"
    suite.resealed(
        "value-from-before-its-removal",
        "a removed value in place of a later one, with its tag",
        "tail-only",
        TAMPERED,
        {"frame 5 sealed value": constant(old)},
    )
