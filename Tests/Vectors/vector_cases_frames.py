"""Frames: lengths, the chain and seals. Faults in records are in vector_cases_records.py."""

import struct

from nacl import bindings

import vault_format as f
from vector_bases import noise, put, remove
from vector_suite import TAMPERED, constant, flip, following, number, plus

# Offsets in the metadata of a frame; those from the time of creation on are of a put.
IDENTIFIER, SEQUENCE, KIND, TIME, CREATED, VALUE_LENGTH, TAG, SERVICE = 0, 16, 24, 25, 33, 41, 45, 61
REMOVED_SERVICE = 33  # of a remove
METADATA_AD = {"file id": 0, "offset": 16, "m": 24, "previous tag": 28}


def add(suite):
    damaged(suite)
    lengths(suite)
    bounds(suite)
    sequences(suite)
    chain(suite)
    padding(suite)
    removes(suite)
    swaps(suite)


def frame(suite, index, base="small"):
    made = suite.made[base]
    start, length = made.parts[f"frame {index}"]
    return made.file[start : start + length]


def m_of(suite, index, base="small"):
    data = frame(suite, index, base)
    key = suite.made[base].sealer.keys[f.FRAME_LENGTHS]
    return int.from_bytes(f.masked_length(key, data[4:28], data[:4]), "little")


def damaged(suite):
    m = m_of(suite, 0)
    places = {
        "m": (0, 1, "m"),
        "m-by-32": (0, 32, "m, by 32"),
        "m-by-8192": (1, 32, "m, by 8192"),
        "m-high": (3, 128, "the highest bit of m"),
        "nonce": (4, 1, "the nonce of the metadata"),
        "nonce-end": (27, 1, "the last byte of the nonce of the metadata"),
        "metadata": (28, 1, "the metadata"),
        "metadata-end": (27 + m, 1, "the last byte of the metadata"),
        "tag": (28 + m, 1, "the tag of the metadata"),
        "tag-end": (43 + m, 1, "the last byte of the tag of the metadata"),
        "value-nonce": (44 + m, 1, "the nonce of the value"),
        "value": (68 + m, 1, "the value"),
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
    plain = struct.pack("<I", m_of(suite, 3))
    suite.overwritten(
        "frame-m-not-masked", "the last frame's m without its mask", "small", TAMPERED, "frame 3", 0, plain
    )


def lengths(suite):
    """Wrong lengths in the last frame, a put, and in a remove, under valid seals."""
    m = m_of(suite, 3)
    faults = {
        "zero": number(0, "I", 0),
        "32-less": plus(0, "I", -32),
        "32-more": plus(0, "I", 32),
        "one-more": plus(0, "I", 1),
        "16-more": plus(0, "I", 16),
        "reaches-end-of-value": plus(0, "I", 64),
        "67680": number(0, "I", 67_680),
        "above-1-mib": number(0, "I", (1 << 20) + 32),
        "65536": number(0, "I", 65_536),
        "1-mib": number(0, "I", 1 << 20),
        "2-31": number(0, "I", 1 << 31),
        "most": number(0, "I", 0xFFFFFFFF),
        "wraps": number(0, "I", (1 << 32) - 32),
    }
    for name, fault in faults.items():
        what = struct.unpack("<I", fault(struct.pack("<I", m)))[0]
        suite.resealed(f"frame-m-{name}", f"m is {what} instead of {m}", "small", TAMPERED, {"frame 3 m": fault})
    key = suite.made["small"].sealer.keys
    for name, number_of_key in (("3", f.FRAMES), ("8", f.LINEAGE)):
        nonce = frame(suite, 3)[4:28]
        masked = f.masked_length(key[number_of_key], nonce, struct.pack("<I", m))
        suite.resealed(
            f"frame-m-masked-under-subkey-{name}",
            f"m is masked under subkey {name}",
            "small",
            TAMPERED,
            {"frame 3 masked m": constant(masked)},
        )
    masks = {
        "blake2b": f.blake2b(128, nonce, key[f.FRAME_LENGTHS]),
        "second-half": bindings.crypto_shorthash_siphash24(nonce, key[f.FRAME_LENGTHS][16:]),
        "high-bytes": bindings.crypto_shorthash_siphash24(nonce, key[f.FRAME_LENGTHS][:16])[4:],
    }
    for name, mask in masks.items():
        what = {
            "blake2b": "BLAKE2b of the nonce",
            "second-half": "SipHash under the last 16 bytes of subkey 6",
            "high-bytes": "the last four bytes of SipHash",
        }[name]
        masked = bytes(a ^ b for a, b in zip(struct.pack("<I", m), mask))
        suite.resealed(
            f"frame-m-masked-by-{name}",
            f"m is masked by {what}",
            "small",
            TAMPERED,
            {"frame 3 masked m": constant(masked)},
        )
    for value in (0, 1, 40, 71, 73, 104, 136, 16_777_256, 16_777_288, 16_777_320, 0xFFFFFFFF):
        suite.resealed(
            f"frame-value-length-{value}",
            f"a value's length of {value} instead of 72",
            "small",
            TAMPERED,
            {"frame 3 metadata": number(VALUE_LENGTH, "I", value)},
        )
    value = frame(suite, 3)[-72:]
    suite.resealed(
        "remove-with-value",
        "a sealed value after a remove",
        "small",
        TAMPERED,
        {"commit slot 0 state": plus(8, "Q", 72), "commit slot 1 state": plus(8, "Q", 72)},
        change=lambda d: d.update(tail=[[put("deploy", "x"), remove("old")]]),
        after=lambda made: made.file + value,
    )
    for name, (what, sealed) in {
        "byte-more": ("with a byte after it", lambda sealed: sealed + bytes(1)),
        "empty-seal": ("of no plaintext", lambda sealed: sealed[:24] + sealed[-16:]),
        "missing": ("of no bytes", lambda sealed: b""),
    }.items():
        suite.resealed(
            f"frame-sealed-value-{name}",
            f"a put with a sealed value {what}",
            "small",
            TAMPERED,
            {"frame 3 sealed value": sealed},
        )
    within = {"1": bytes(1), "43": bytes(43), "44": bytes(44), "a frame's 244": bytes(244)}
    for name, data in within.items():
        suite.resealed(
            f"frame-of-zeros-{len(data)}",
            f"{name} bytes of zeros after the last frame, within the end",
            "small",
            TAMPERED,
            {f"commit slot {slot} state": plus(8, "Q", len(data)) for slot in (0, 1)},
            after=lambda made, data=data: made.file + data,
        )


def bounds(suite):
    """The longest metadata and the longest tail, and what is longer."""
    longest = len(suite.made["longest-tail"].description["tail"][-1][0]["put"]["fields"][0][1]) // 2
    suite.resealed(
        "tail-one-padding-longer",
        "a tail whose frames have 1,048,608 bytes without their values",
        "longest-tail",
        TAMPERED,
        change=lambda d: d["tail"][-1][0]["put"]["fields"][0].__setitem__(1, "00" * (longest + 1)),
    )
    suite.resealed(
        "tail-one-frame-longer",
        "a frame after a tail that is full",
        "longest-tail",
        TAMPERED,
        change=lambda d: d["tail"].append([put("one", "more")]),
    )
    suite.resealed(
        "tail-one-remove-longer",
        "a remove after a tail that is full",
        "longest-tail",
        TAMPERED,
        change=lambda d: d["tail"].append([remove("a", "s")]),
    )
    suite.resealed(
        "ok-tail-with-long-value",
        "a full tail with a value of 2,000 bytes, which does not count",
        "longest-tail",
        f.OK,
        change=lambda d: d["tail"][-1][0]["put"].update(value=noise(2000, "long value").hex()),
    )


def sequences(suite):
    def everywhere(index, new):
        """Changes a frame's sequence, and that of its value's seal."""
        part = f"frame {index}"
        return {
            f"{part} metadata": number(SEQUENCE, "Q", new),
            f"{part} value associated data": number(32, "Q", new),
        }

    def slots(sequence):
        return {f"commit slot {slot} state": number(0, "Q", sequence) for slot in (0, 1)}

    last = suite.made["small"].sequence
    for name, new in {
        "one-more": last + 1,
        "one-less": last - 1,
        "zero": 0,
        "2-62": 1 << 62,
        "2-63": 1 << 63,
        "most": (1 << 64) - 1,
    }.items():
        suite.resealed(
            f"frame-sequence-{name}",
            f"the last frame's sequence: {name.replace('-', ' ')}; its value is sealed under it",
            "small",
            TAMPERED,
            everywhere(3, new),
        )
    for name, new in (("gap", last + 1), ("repeated", last - 1)):
        suite.resealed(
            f"frame-sequence-{name}-everywhere",
            f"a sequence {name} at the last frame, and in the slots",
            "small",
            TAMPERED,
            {**everywhere(3, new), **slots(new)},
        )
    one = lambda d: d.update(tail=[[put("one", "1")]])
    for name, new in (("gap", 3), ("is-roots", 1)):
        suite.resealed(
            f"frame-first-sequence-{name}",
            f"the first frame has sequence {new}, and the root 1",
            "created",
            TAMPERED,
            {**everywhere(0, new), **slots(new)},
            change=one,
        )
    suite.resealed(
        "frame-sequence-wraps",
        "the root has the highest sequence of 64 bits, and the first frame has sequence 0",
        "created",
        TAMPERED,
        {**everywhere(0, 0), **slots(0), "root": number(0, "Q", (1 << 64) - 1)},
        change=one,
    )
    suite.resealed(
        "frame-sequence-2-62-everywhere",
        "a frame of sequence 2^62 after a root of 2^62 - 1",
        "created",
        TAMPERED,
        change=lambda d: d.update(base={"items": [], "sequence": (1 << 62) - 1}, tail=[[put("one", "1")]]),
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
        {f"commit slot {slot} state": number(8, "Q", kept) for slot in (0, 1)},
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
    m = m_of(suite, index)
    return frame(suite, index)[28 + m : 44 + m]


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


def removes(suite):
    part = "frame 2 metadata"

    def renamed(service, account):
        head = lambda value: identifier(suite, service, account) + value[SEQUENCE:REMOVED_SERVICE]
        return lambda value: head(value) + text(service) + text(account) + bytes(2)

    faults = {
        "something-follows": ("a byte follows", following(b"\0")),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "without-fields": ("the list of fields is missing", lambda value: value[:-2]),
        "put-leftover": (
            "a time of creation, a length and a tag before the names, as in a put",
            lambda value: value[:REMOVED_SERVICE] + bytes(28) + value[REMOVED_SERVICE:],
        ),
        "lookup-id": ("a lookup id of other names", flip(IDENTIFIER)),
        "renamed": ("names of another lookup id", flip(-3)),
        "service-empty": ("a service of no bytes", renamed(b"", b"a")),
        "account-empty": ("an account of no bytes", renamed(b"s", b"")),
        "service-1025": ("a service of 1025 bytes", renamed(b"s" * 1025, b"a")),
        "account-1025": ("an account of 1025 bytes", renamed(b"s", b"a" * 1025)),
        "service-nul": ("a NUL in the service", renamed(b"s\0", b"a")),
        "account-not-utf8": ("an account that is not UTF-8", renamed(b"s", b"\xff")),
        "kind-0": ("kind 0", number(KIND, "B", 0)),
        "kind-1": ("a remove whose kind is put", number(KIND, "B", 1)),
        "kind-3": ("kind 3", number(KIND, "B", 3)),
        "kind-130": ("kind 130", number(KIND, "B", 130)),
        "sequence": ("the sequence of the frame before", plus(SEQUENCE, "Q", -1)),
    }
    for name, (comment, fault) in faults.items():
        suite.resealed(f"remove-{name}", comment + ", in a remove", "small", TAMPERED, {part: fault})
    for name, time in (("least", -(1 << 63)), ("most", (1 << 63) - 1)):
        suite.resealed(
            f"ok-remove-time-{name}",
            f"the {name} time of a removal",
            "created",
            f.OK,
            change=lambda d, time=time: d.update(
                tail=[[put("one", "1"), remove("one", time=time)]], history={"versions": 1, "days": 0}
            ),
        )


def identifier(suite, service, account):
    message = struct.pack("<I", len(service)) + service + struct.pack("<I", len(account)) + account
    return f.blake2b(128, message, suite.made["small"].lookup_key)


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
