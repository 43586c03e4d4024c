"""The header without its key slots."""

import struct

import vault_format as f
from vector_bases import OTHER_KEY, PASSPHRASE, filled_slots, key_slot, noise
from vector_cases_commits import mac_of
from vector_suite import TAMPERED, constant, flip, following, number

BY_PASSPHRASE = {"passphrase": PASSPHRASE}


def add(suite):
    fields(suite)
    structure(suite)
    authentication(suite)


def fields(suite):
    for index in range(8):
        suite.damage(
            f"magic-byte-{index}",
            f"byte {index} of the magic",
            "created",
            f.NOT_A_VAULT,
            (index, 1, bytes([f.MAGIC[index] ^ 0x20])),
        )
    suite.damage(
        "magic-newlines-translated", "the CR LF of the magic is replaced by LF", "created", f.NOT_A_VAULT, (4, 1, b"")
    )
    suite.damage("magic-7-bit", "the first byte without its highest bit", "created", f.NOT_A_VAULT, (0, 1, b"\x09"))
    suite.damage(
        "magic-byte-order-mark", "a byte order mark before the magic", "created", f.NOT_A_VAULT, (0, 0, b"\xef\xbb\xbf")
    )
    suite.truncated("truncated-empty", "an empty file", "created", f.NOT_A_VAULT, 0)
    suite.truncated("truncated-1", "one byte of the magic", "created", f.NOT_A_VAULT, 1)
    suite.truncated("truncated-7", "seven bytes of the magic", "created", f.NOT_A_VAULT, 7)
    for size in (8, 12, 16, 24, 28, 60, 63, 64, 65, 68, 100, 200, 4095, 4096):
        suite.truncated(f"truncated-{size}", f"the first {size} bytes", "created", TAMPERED, size)
    for version in (0, 2, 256, 0x10001, 0xFFFFFFFF):
        suite.damage(
            f"version-{version}",
            f"version {version}",
            "created",
            f.UNSUPPORTED_VERSION,
            (8, 4, struct.pack("<I", version)),
        )
    for bit in (0, 1, 7, 8, 16, 31):
        suite.damage(
            f"incompatible-bit-{bit}",
            f"bit {bit} of the incompatible features",
            "created",
            f.UNSUPPORTED_VERSION,
            (12, 4, struct.pack("<I", 1 << bit)),
        )
    suite.damage(
        "incompatible-all", "every incompatible feature", "created", f.UNSUPPORTED_VERSION, (12, 4, b"\xff" * 4)
    )
    suite.damage(
        "incompatible-and-wrong-key",
        "an incompatible feature, and a wrong key",
        "created",
        f.UNSUPPORTED_VERSION,
        (12, 1, b"\x01"),
        credential={"key_text": OTHER_KEY},
    )
    suite.damage(
        "version-2-and-other-layout",
        "version 2 and a header length of 0: the version is checked first",
        "created",
        f.UNSUPPORTED_VERSION,
        (8, 1, b"\x02"),
        (24, 4, bytes(4)),
    )
    suite.damage(
        "read-only-compatible-unauthenticated",
        "a read-only-compatible feature with the old MAC",
        "created",
        TAMPERED,
        (16, 1, b"\x01"),
    )
    suite.damage(
        "compatible-unauthenticated", "a compatible feature with the old MAC", "created", TAMPERED, (20, 1, b"\x01")
    )
    for field, most, what in (
        ("read_only_compatible", 0xFFFFFFFF, "read-only-compatible features"),
        ("compatible", 0xFFFFFFFF, "compatible features"),
    ):
        for value in (1, most):
            suite.resealed(
                f"ok-{field.replace('_', '-')}-{value:x}",
                f"{what}: {value:#x}",
                "small",
                f.OK,
                change=lambda d, field=field, value=value: d.update({field: value}),
            )


    for name, comment, outcome, fault in (
        ("magic-resealed", "a wrong magic, resealed", f.NOT_A_VAULT, flip(7)),
        ("version-2-resealed", "version 2, resealed", f.UNSUPPORTED_VERSION, number(8, "I", 2)),
        ("incompatible-resealed", "an incompatible feature, resealed", f.UNSUPPORTED_VERSION, number(12, "I", 1)),
    ):
        suite.resealed(name, comment, "small", outcome, {"header fields": fault})


def structure(suite):
    length = suite.end("small", "header MAC")
    lengths = {
        0: "zero",
        63: "63",
        128: "128",
        length - 1: "one-less",
        length + 1: "one-more",
        length - 64: "64-less",
        4096: "4096",
        1_048_576: "1-mib",
        1_048_577: "above-1-mib",
        0xFFFFFFFF: "most",
    }
    for value, name in lengths.items():
        data = struct.pack("<I", value)
        suite.damage(
            f"header-length-{name}", f"a header length of {value} instead of {length}", "small", TAMPERED, (24, 4, data)
        )
    for value in (length - 1, length + 1):
        suite.resealed(
            f"header-length-{lengths[value]}-resealed",
            f"a header length of {value} instead of {length}, resealed",
            "small",
            TAMPERED,
            {"header fields": number(24, "I", value)},
        )
    for value in (length - 1, length - 32, length + 1):
        # The MAC of the bytes before the place where a reader that trusts this length looks for it.
        header = suite.made["small"].header
        header = header[:24] + struct.pack("<I", value) + header[28:]
        mac = f.header_mac(suite.made["small"].master, header[: value - 32])
        suite.resealed(
            f"header-length-{lengths.get(value, '32-less')}-authenticated",
            f"a header length of {value} instead of {length}, and the MAC of as many bytes less 32",
            "small",
            TAMPERED,
            {
                "header fields": number(24, "I", value),
                "header MAC": constant(mac),
                **{f"commit slot {n} associated data": constant(f.commit_associated(n, mac)) for n in (0, 1)},
            },
        )
    for count in (0, 1, 3, 240, 241, 255):
        suite.damage(
            f"slot-count-{count}",
            f"a count of {count} key slots instead of 2",
            "small",
            TAMPERED,
            (60, 1, bytes([count])),
        )
        suite.resealed(
            f"slot-count-{count}-resealed",
            f"a count of {count} key slots instead of 2, resealed",
            "small",
            TAMPERED,
            {"header fields": number(60, "B", count)},
        )
    suite.resealed(
        "one-slot-too-many",
        "241 key slots",
        "most-slots",
        TAMPERED,
        change=lambda d: d["slots"].append(key_slot("one more", noise(32, "one more"))),
    )
    suite.resealed("no-slots", "no key slot", "small", TAMPERED, change=lambda d: d["slots"].clear())
    suite.resealed(
        "largest-header-and-one",
        "a header of a byte more than 1 MiB",
        "largest-header",
        TAMPERED,
        change=lambda d: d.update(slots=filled_slots(f.MAXIMUM_HEADER + 1)),
    )
    for offset in (61, 62, 63):
        suite.damage(f"header-reserved-{offset}", f"reserved byte {offset}", "small", TAMPERED, (offset, 1, b"\x01"))
        suite.resealed(
            f"header-reserved-{offset}-resealed",
            f"reserved byte {offset}, resealed",
            "small",
            TAMPERED,
            {"header fields": number(offset, "B", 128)},
        )
    for offset, which in ((0, "first"), (-1, "last")):
        suite.flipped(
            f"header-padding-{which}", f"the {which} byte of the padding", "small", TAMPERED, "header padding", offset
        )
        suite.resealed(
            f"header-padding-{which}-resealed",
            f"the {which} byte of the padding, resealed",
            "small",
            TAMPERED,
            {"header padding": flip(offset)},
        )
    suite.resealed(
        "gap-after-slots",
        "four bytes between the last key slot and the commitment",
        "small",
        TAMPERED,
        {"key slots": following(bytes(4))},
    )


def authentication(suite):
    suite.damage("vault-id", "another vault id: no commitment matches", "small", f.WRONG_KEY, (28, 1, b"\x5a"))
    suite.damage(
        "vault-id-passphrase",
        "another vault id, opened with a passphrase",
        "small",
        f.WRONG_KEY,
        (43, 1, b"\x5a"),
        credential=BY_PASSPHRASE,
    )
    suite.damage("file-id", "another file id: the MAC is wrong", "small", TAMPERED, (44, 1, b"\x5a"))
    for part in ("master key commitment", "header MAC"):
        name = part.lower().replace(" ", "-")
        for offset, which in ((0, "first"), (-1, "last")):
            suite.flipped(f"{name}-{which}-byte", f"the {which} byte of the {part}", "small", TAMPERED, part, offset)
    suite.resealed(
        "master-key-commitment-resealed",
        "a wrong master key commitment under a right MAC",
        "small",
        TAMPERED,
        {"master key commitment": flip(0)},
    )
    suite.resealed(
        "header-mac-resealed",
        "a wrong MAC, with commit slots that are sealed for it",
        "small",
        TAMPERED,
        {"header MAC": flip(0)},
    )
    suite.resealed(
        "wrapped-another-key",
        "the key slot wraps another master key, to which the header is not committed",
        "small",
        TAMPERED,
        {"key slot 0 master key": flip(0)},
    )
    suite.resealed(
        "wrapped-key-tag-resealed",
        "the right master key, wrapped with a wrong tag, under a right MAC",
        "small",
        TAMPERED,
        {"key slot 0 wrapped key": flip(-1)},
    )
    suite.resealed(
        "header-of-another-file",
        "a new file id under a right MAC: the commit slots do not open",
        "small",
        TAMPERED,
        {
            "header fields": flip(44),
            **{f"commit slot {n} associated data": associated_of_base(suite, n) for n in (0, 1)},
        },
    )


def associated_of_base(suite, index):
    return constant(f.commit_associated(index, mac_of(suite.made["small"])))
