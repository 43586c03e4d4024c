"""Valid vaults, wrong credentials, and faults in values and metadata."""

import vault_format as f
import vault_records as p
from vector_bases import CI_KEY, NFC, NFD, OTHER_KEY, PASSPHRASE, noise, put, remove
from vector_suite import TAMPERED, flip, following

SUPERSEDED = (
    "A reader that verifies the whole vault authenticates replaced and removed values. A reader that only looks up "
    "secrets need not."
)


def key(bytes):
    return {"key_text": bytes}


def passphrase(text):
    return {"passphrase": text}


def add(suite):
    for base, comment in {
        "created": "a new vault: no secrets, and the same state in both commit slots",
        "small": "four items in two blocks, four frames in three commits, one of two frames, and a history",
        "uncopied": "the same; the last commit's state is in slot 1 alone, as a crash leaves it",
        "values": "values of sizes near the padding sizes, with every byte, empty, and ending like padding",
        "identifiers": "names that are equal only after normalisation, of maximum length, and with unusual characters",
        "metadata": "labels, expiry times and attributes at their limits",
        "times": "the lowest and highest times of 64 bits",
        "passphrases": "the first of six passphrase slots",
        "default-cost": "64 MiB and 3 passes",
        "most-slots": "240 key slots of every type, five of them unknown; the last slot opens it",
        "recipients": "a slot of an X25519 recipient, opened with its identity",
        "largest-header": "a header of 1 MiB",
        "many": "320 items in three blocks",
        "one-block": "a block of more than 16,384 bytes",
        "largest-block": "a block of 1 MiB whose items are all removed",
        "tail-only": "an empty base; put, replaced, removed and put again in one transaction; commit slot 0 is newer",
        "emptied": "a vault whose only secret is removed",
        "versions": "earlier versions and removals, in blocks of three items and in the tail",
        "example": "the worked example: example.txt",
        "known": "a root of 10 and changes 11 to 14, for the records of places",
        "rekeyed": "the same vault under its next master key, which names the former one",
        "largest-metadata": "the longest metadata, which is padded to 67,680 bytes, an unknown field in it",
        "longest-tail": "frames that have 1,048,576 bytes without their values",
        "blocks": "five blocks and recent changes",
        "recent": "recent changes, two of them in the same place of both sides of a merge",
        "most-recent": "2,048 recent changes",
        "former-slots": "key slots that were removed",
    }.items():
        suite.intact(f"ok-{base}", comment, base)
    credentials(suite)
    histories(suite)
    values(suite)


def credentials(suite):
    suite.intact(
        "ok-passphrase",
        "the passphrase slot of a vault that also has a key slot",
        "small",
        credential=passphrase(PASSPHRASE),
    )
    suite.intact("ok-first-of-most", "the first of 240 slots", "most-slots", credential=key(noise(32, "key 0")))
    suite.intact("ok-second-key", "another key slot", "times", credential=key(OTHER_KEY))
    suite.intact(
        "ok-key-between-passphrases", "a key slot after a passphrase slot", "passphrases", credential=key(CI_KEY)
    )
    suite.intact(
        "ok-passphrase-second", "the second passphrase slot", "passphrases", credential=passphrase("passphrase 2")
    )
    suite.intact("ok-passphrase-nul", "a passphrase with a NUL in it", "passphrases", credential=passphrase("a\0b"))
    for number in (5, 6):
        suite.intact(
            f"ok-passphrase-{number}-of-6",
            "each passphrase slot is tried",
            "passphrases",
            credential=passphrase(f"passphrase {number}"),
        )
    suite.intact(
        "ok-passphrase-fourth",
        "the fourth passphrase slot, which is the fifth slot",
        "passphrases",
        credential=passphrase(NFC),
    )
    wrong = [
        ("wrong-key", "another key", "small", key(OTHER_KEY)),
        ("wrong-key-zeros", "a key of zeros", "small", key(bytes(32))),
        ("wrong-passphrase", "another passphrase", "small", passphrase("correct horse battery stapl")),
        ("wrong-passphrase-case", "the passphrase in capitals", "small", passphrase(PASSPHRASE.upper())),
        ("wrong-passphrase-space", "the passphrase and a space", "small", passphrase(PASSPHRASE + " ")),
        ("wrong-passphrase-cut-at-nul", "the passphrase up to its NUL", "passphrases", passphrase("a")),
        ("wrong-passphrase-nfd", "the passphrase in another normalisation", "passphrases", passphrase(NFD)),
        ("wrong-no-passphrase-slot", "a passphrase for a vault with only key slots", "created", passphrase(PASSPHRASE)),
        ("wrong-no-key-slot", "a key for a vault with only passphrase slots", "default-cost", key(CI_KEY)),
    ]
    for name, comment, base, credential in wrong:
        suite.intact(name, comment, base, f.WRONG_KEY, credential=credential)


def histories(suite):
    def tail(*transactions):
        return lambda description: description.update(tail=list(transactions))

    suite.resealed(
        "ok-same-value-twice",
        "the same value under two names",
        "created",
        f.OK,
        change=tail([put("one", "same"), put("two", "same")]),
    )
    suite.resealed(
        "ok-metadata-replaced",
        "a put without a label after a put with a label: metadata is not merged",
        "created",
        f.OK,
        change=tail([put("one", "1", label="old", expires=5, attributes={"a": "b"}), put("one", "2")]),
    )
    suite.resealed(
        "ok-ten-commits",
        "ten commits: slot 0 is current again",
        "created",
        f.OK,
        change=tail(*[[put(f"account {n}", str(n))] for n in range(10)]),
    )
    suite.resealed(
        "ok-highest-sequence",
        "the highest sequence",
        "created",
        f.OK,
        change=lambda d: d["base"].update(sequence=(1 << 62) - 1),
    )
    suite.resealed(
        "ok-highest-sequence-frame",
        "a frame with the highest sequence",
        "created",
        f.OK,
        change=lambda d: d.update(base={"items": [], "sequence": (1 << 62) - 2}, tail=[[put("one", "1")]]),
    )
    suite.resealed(
        "ok-last-sequence-but-one",
        "the highest sequence but one: one change is left",
        "created",
        f.OK,
        change=lambda d: d["base"].update(sequence=(1 << 62) - 2),
    )
    suite.resealed(
        "sequence-2-62",
        "a base of sequence 2^62",
        "created",
        TAMPERED,
        change=lambda d: d["base"].update(sequence=1 << 62),
    )
    suite.resealed(
        "sequence-zero",
        "a base with sequence 0",
        "created",
        TAMPERED,
        change=lambda d: d["base"].update(sequence=0),
    )


def values(suite):
    suite.flipped(
        "replaced-value-in-base",
        "damage in the base: the value of a secret that a frame replaces",
        "small",
        TAMPERED,
        value_of(suite, "smtp"),
        30,
        reading=SUPERSEDED,
    )
    suite.flipped(
        "removed-value-in-base",
        "damage in the base: the value of a secret that a frame removes",
        "small",
        TAMPERED,
        value_of(suite, "old"),
        30,
        reading=SUPERSEDED,
    )
    suite.flipped(
        "replaced-value-in-tail",
        "damage in a frame: a value that a later frame replaces",
        "tail-only",
        TAMPERED,
        "frame 0",
        -20,
        reading=SUPERSEDED,
    )
    paddings = {
        "no-80": ("no 80 before the zeros", lambda padded: bytes(32)),
        "zeros-after": ("a whole block of zeros after the padding", following(bytes(32))),
        "ends-in-81": ("81 instead of 80", lambda padded: padded[:-1] + b"\x81"),
        "33-bytes": ("a padded value of 33 bytes", lambda padded: b"x" * 32 + b"\x80"),
        "31-bytes": ("a padded value of 31 bytes", lambda padded: padded[:-1]),
        "nothing": ("a padded value of no bytes", lambda padded: b""),
    }
    for name, (comment, fault) in paddings.items():
        suite.resealed(
            f"value-padding-{name}-in-frame",
            comment + ", in a frame",
            "small",
            TAMPERED,
            {"frame 3 padded value": fault},
        )
        suite.resealed(
            f"value-padding-{name}-in-base",
            comment + ", in the base",
            "small",
            TAMPERED,
            {"base item 0 padded value": fault},
        )
    for part, where in (("frame 3", "frame"), ("base item 0", "base")):
        for offset, what in ((0, "vault id"), (16, "lookup id"), (32, "sequence")):
            suite.resealed(
                f"value-sealed-under-another-{what.replace(' ', '-')}-in-{where}",
                f"a value sealed under another {what}, in the {where}",
                "small",
                TAMPERED,
                {f"{part} value associated data": flip(offset)},
            )


def value_of(suite, account):
    """The part of the small vault's base with the value of an account."""
    made = suite.made["small"]
    number = next(i for i, one in enumerate(made.description["base"]["items"]) if one["account"] == account)
    ids = sorted(
        (p.lookup_id(made.lookup_key, one["service"], one["account"]), i)
        for i, one in enumerate(made.description["base"]["items"])
    )
    place = [i for _, i in ids].index(number)
    return f"block {place // 2} value {place % 2}"
