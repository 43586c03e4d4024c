"""Valid vaults, wrong credentials, and faults in values and metadata."""

import vault_format as f
from vector_bases import CI_KEY, NFC, NFD, OTHER_KEY, PASSPHRASE, noise, put, remove
from vector_suite import TAMPERED, flip, following, number, patch

ABSENT = "A remove of a missing secret is a valid frame."
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
        "small": "four items in two blocks, and four frames in three commits",
        "values": "values of sizes near the padding sizes, with every byte, empty, and ending like padding",
        "identifiers": "names that are equal only after normalisation, of maximum length, and with unusual characters",
        "metadata": "labels, expiry times and attributes at their limits",
        "times": "the lowest and highest times of 64 bits",
        "passphrases": "the first of six passphrase slots",
        "default-cost": "64 MiB and 3 passes",
        "sixteen-slots": "sixteen key slots, four of them unknown; a header of two pages; the last slot opens it",
        "largest-header": "a header of 65,536 bytes",
        "many": "320 items in three blocks",
        "one-block": "a block of more than 16,384 bytes",
        "largest-block": "a block of 1 MiB whose items are all removed",
        "tail-only": "an empty base; put, replaced, removed and put again in one transaction; commit slot 0 is current",
        "emptied": "a vault whose only secret is removed",
    }.items():
        suite.intact(f"ok-{base}", comment, base)
    credentials(suite)
    histories(suite)
    values(suite)
    texts(suite)


def credentials(suite):
    suite.intact(
        "ok-passphrase", "the passphrase slot of a vault that also has a key slot", "small", credential=passphrase(PASSPHRASE)
    )
    suite.intact(
        "ok-first-of-sixteen", "the first of sixteen slots", "sixteen-slots", credential=key(noise(32, "key 0"))
    )
    suite.intact("ok-second-key", "another key slot", "times", credential=key(OTHER_KEY))
    suite.intact(
        "ok-key-between-passphrases", "a key slot after a passphrase slot", "passphrases", credential=key(CI_KEY)
    )
    suite.intact(
        "ok-passphrase-second", "the second passphrase slot", "passphrases", credential=passphrase("passphrase 2")
    )
    suite.intact("ok-passphrase-nul", "a passphrase with a NUL in it", "passphrases", credential=passphrase("a\0b"))
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
        ("wrong-passphrase-fifth", "the fifth passphrase slot is not tried", "passphrases", passphrase("passphrase 5")),
        ("wrong-passphrase-sixth", "the sixth passphrase slot is not tried", "passphrases", passphrase("passphrase 6")),
        ("wrong-no-passphrase-slot", "a passphrase for a vault with only key slots", "created", passphrase(PASSPHRASE)),
        ("wrong-no-key-slot", "a key for a vault with only passphrase slots", "default-cost", key(CI_KEY)),
    ]
    for name, comment, base, credential in wrong:
        suite.intact(name, comment, base, f.WRONG_KEY, credential=credential)


def histories(suite):
    def tail(*transactions):
        return lambda description: description.update(tail=list(transactions))

    suite.resealed(
        "ok-remove-absent",
        "a remove of a secret that never existed",
        "created",
        f.OK,
        change=tail([remove("nothing")]),
        reading=ABSENT,
    )
    suite.resealed(
        "ok-remove-twice",
        "a secret removed twice in one transaction",
        "created",
        f.OK,
        change=tail([put("one", "1"), remove("one"), remove("one")]),
        reading=ABSENT,
    )
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
        "ok-sequence-zero",
        "a base with sequence 0",
        "created",
        f.OK,
        change=lambda d: d["base"].update(sequence=0),
        reading="The specification names no lowest sequence.",
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
    sealer = made.sealer
    ids = sorted(
        (f.lookup_id(sealer.keys[f.LOOKUP_IDS], one["service"], one["account"]), i)
        for i, one in enumerate(made.description["base"]["items"])
    )
    place = [i for _, i in ids].index(number)
    return f"block {place // 2} value {place % 2}"


# Metadata, in a frame and in the base

SERVICE = 57  # the offset of the service's length, after id, sequence, tag, two times and flags


def text(data):
    return len(data).to_bytes(2, "little") + data


def lookup_id_of(suite, service, account):
    """The lookup id of two texts in the vault of the faults below."""
    names = len(service).to_bytes(4, "little") + service + len(account).to_bytes(4, "little") + account
    return f.blake2b(128, names, suite.made["created"].sealer.keys[f.LOOKUP_IDS])


class Metadata:
    """Encoded metadata with arbitrary fields. The lookup id is right, and the value is sealed under it."""

    def __init__(
        self, service=b"s", account=b"a", label=None, expires=None, attributes=(), flags=None, count=None, then=b""
    ):
        self.names = service, account
        bits = (1 if label is not None else 0) | (2 if expires is not None else 0)
        self.fields = bytes([bits if flags is None else flags]) + text(service) + text(account)
        self.fields += text(label) if label is not None else b""
        self.fields += expires if expires is not None else b""
        self.fields += bytes([len(attributes) if count is None else count])
        self.fields += b"".join(text(name) + text(content) for name, content in attributes) + then

    def faults(self, suite):
        identifier = lookup_id_of(suite, *self.names)
        return {
            "metadata": lambda value: identifier + value[16:56] + self.fields,
            "value associated data": patch(16, identifier),
        }


def faults_of(suite, fault):
    return fault.faults(suite) if isinstance(fault, Metadata) else {"metadata": fault}


def texts(suite):
    """Faults in the frame of a vault with one put; some of them also in the base."""
    probe = [put("probe", "value")]
    description = lambda d: d.update(tail=[probe])
    pair = (b"n", b"v")
    faults = {
        "service-empty": ("a service of no bytes", Metadata(service=b"")),
        "service-1025": ("a service of 1025 bytes", Metadata(service=b"s" * 1025)),
        "service-nul": ("a NUL in the service", Metadata(service=b"a\0b")),
        "service-not-utf8": ("a service that is not UTF-8", Metadata(service=b"a\xff")),
        "service-overlong": ("an overlong encoding in the service", Metadata(service=b"\xc1\x81")),
        "service-overlong-nul": ("an overlong NUL in the service", Metadata(service=b"\xc0\x80")),
        "service-surrogate": ("a surrogate in the service", Metadata(service=b"\xed\xa0\x80")),
        "service-beyond-unicode": ("a code point above 10FFFF in the service", Metadata(service=b"\xf4\x90\x80\x80")),
        "service-cut-utf8": ("a character cut short in the service", Metadata(service=b"caf\xc3")),
        "account-empty": ("an account of no bytes", Metadata(account=b"")),
        "account-1025": ("an account of 1025 bytes", Metadata(account=b"a" * 1025)),
        "account-nul": ("a NUL in the account", Metadata(account=b"\0")),
        "account-not-utf8": ("an account that is not UTF-8", Metadata(account=b"\x80")),
        "label-1025": ("a label of 1025 bytes", Metadata(label=b"l" * 1025)),
        "label-nul": ("a NUL in the label", Metadata(label=b"l\0")),
        "label-not-utf8": ("a label that is not UTF-8", Metadata(label=b"\xfe")),
        "label-unflagged": ("a label without its flag", Metadata(label=b"label", flags=0)),
        "label-flagged-and-missing": ("a label flag without a label", Metadata(flags=1)),
        "expiry-flagged-and-missing": ("an expiry flag without an expiry time", Metadata(flags=2)),
        "expiry-unflagged": ("an expiry time without its flag", Metadata(expires=bytes(8), flags=0)),
        "flag-4": ("a reserved flag", Metadata(flags=4)),
        "flag-128": ("the highest reserved flag", Metadata(flags=128)),
        "attributes-33": ("33 attributes", Metadata(attributes=[(b"%02d" % n, b"") for n in range(33)])),
        "attributes-fewer": ("one attribute less than counted", Metadata(attributes=[pair], count=2)),
        "attributes-more": ("one attribute more than counted", Metadata(attributes=[pair], count=0)),
        "attributes-255": ("255 attributes counted", Metadata(attributes=[pair], count=255)),
        "attributes-unsorted": ("attributes out of order", Metadata(attributes=[(b"b", b"1"), (b"a", b"2")])),
        "attributes-utf16-order": (
            "attributes in the order of UTF-16",
            Metadata(attributes=[("\U00010000".encode(), b"1"), ("\uff5e".encode(), b"2")]),
        ),
        "attributes-prefix-order": (
            "a name before its own prefix",
            Metadata(attributes=[(b"ab", b"1"), (b"a", b"2")]),
        ),
        "attributes-duplicate": ("one attribute twice", Metadata(attributes=[pair, pair])),
        "attributes-duplicate-name": ("one name with two values", Metadata(attributes=[pair, (b"n", b"w")])),
        "attribute-name-empty": ("an attribute without a name", Metadata(attributes=[(b"", b"v")])),
        "attribute-name-129": ("an attribute's name of 129 bytes", Metadata(attributes=[(b"n" * 129, b"v")])),
        "attribute-name-nul": ("a NUL in an attribute's name", Metadata(attributes=[(b"n\0", b"v")])),
        "attribute-name-not-utf8": ("an attribute's name that is not UTF-8", Metadata(attributes=[(b"\xff", b"v")])),
        "attribute-value-1025": ("an attribute's value of 1025 bytes", Metadata(attributes=[(b"n", b"v" * 1025)])),
        "attribute-value-nul": ("a NUL in an attribute's value", Metadata(attributes=[(b"n", b"\0")])),
        "attribute-value-not-utf8": ("an attribute's value that is not UTF-8", Metadata(attributes=[(b"n", b"\xff")])),
        "something-follows": ("a byte follows", Metadata(then=b"\0")),
        "something-nonzero-follows": ("a byte follows that is not zero", Metadata(then=b"x")),
        "lookup-id": ("a lookup id of other names", flip(0)),
        "lookup-id-last-byte": ("a lookup id with a wrong last byte", flip(15)),
        "account-renamed": ("another account with the same lookup id", flip(SERVICE + 17 + 2)),
        "sequence": ("a sequence that is not the frame's", flip(16)),
        "value-tag": ("a wrong tag of the value", flip(24)),
        "value-tag-last-byte": ("a tag of the value with a wrong last byte", flip(39)),
        "empty": ("no metadata at all", lambda value: b""),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "cut-in-lookup-id": ("metadata of 15 bytes", lambda value: value[:15]),
        "text-beyond-the-end": ("a text that is longer than the rest of the metadata", number(SERVICE, "H", 1024)),
    }
    for name, (comment, fault) in faults.items():
        parts = {f"frame 0 {part}": one for part, one in faults_of(suite, fault).items()}
        suite.resealed(f"metadata-{name}", comment, "created", TAMPERED, parts, change=description)
    suite.resealed(
        "metadata-lookup-id-everywhere",
        "a lookup id of other names, under which the value is sealed",
        "created",
        TAMPERED,
        {"frame 0 lookup id": flip(0)},
        change=description,
    )
    suite.resealed(
        "metadata-sequence-and-value",
        "a sequence that is not the frame's, under which the value is sealed",
        "created",
        TAMPERED,
        {"frame 0 metadata": flip(16), "frame 0 value associated data": flip(32)},
        change=description,
    )
    base = lambda d: d.update(base={"items": [probe[0]["put"]], "sequence": 2})
    for name in (
        "service-empty",
        "service-nul",
        "service-surrogate",
        "label-1025",
        "flag-4",
        "attributes-33",
        "attributes-unsorted",
        "attributes-duplicate-name",
        "lookup-id",
        "value-tag",
        "account-renamed",
    ):
        comment, fault = faults[name]
        parts = faults_of(suite, fault)
        change = parts.pop("metadata")
        parts["item"] = lambda value, change=change: change(value[:-12]) + value[-12:]
        names = {"item": "block 0 item 0", "value associated data": "base item 0 value associated data"}
        suite.resealed(
            f"metadata-{name}-in-base",
            comment + ", in the base",
            "created",
            TAMPERED,
            {names[part]: one for part, one in parts.items()},
            change=base,
        )
    suite.resealed(
        "metadata-lookup-id-everywhere-in-base",
        "a lookup id of other names, under which the value is sealed, in the base",
        "created",
        TAMPERED,
        {"base item 0 lookup id": flip(0)},
        change=base,
    )
    accented = put("probe", "value", attributes={NFD: "decomposed", NFC: "composed"})
    suite.resealed(
        "ok-attributes-nfc-nfd",
        "two attributes whose names are equal only after normalisation",
        "created",
        f.OK,
        change=lambda d: d.update(tail=[[accented]]),
        reading="Names of attributes are compared as bytes, like the names of secrets.",
    )
