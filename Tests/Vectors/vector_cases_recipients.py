"""The key slots of recipients: X25519, which an identity opens, and hybrid, of which the form is checked."""

import struct

from nacl import bindings

import vault_format as f
from vector_bases import (
    CI_KEY,
    IDENTITY,
    NOW,
    OTHER_IDENTITY,
    OTHER_RECIPIENT,
    PASSPHRASE,
    RECIPIENT,
    hybrid_slot,
    noise,
    recipient_slot,
    unknown_slot,
)
from vector_cases_key_slots import labelled
from vector_suite import TAMPERED, constant, each, flip, following, number, patch, plus

MINE, OTHER, HYBRID = "key slot 1", "key slot 2", "key slot 3"  # of the vault `recipients`
AT = 29 + len("recipient")  # where the recipient is in its slot
SHARE = AT + 32
BY_KEY, BY_OTHER = {"key_text": CI_KEY}, {"identity": OTHER_IDENTITY}
BY_STRANGER = {"identity": noise(32, "the identity of a stranger")}

# Points of low order, of which every product is zero.
ORDER_8 = bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
OTHER_ORDER_8 = bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")
P = (1 << 255) - 19
LOW_ORDER = {
    "zero": bytes(32),
    "one": b"\1" + bytes(31),
    "minus-one": (P - 1).to_bytes(32, "little"),
    "p": P.to_bytes(32, "little"),
    "p-and-one": (P + 1).to_bytes(32, "little"),
    "order-8": ORDER_8,
    "other-order-8": OTHER_ORDER_8,
}


def add(suite):
    credentials(suite)
    slots(suite)
    shares(suite)
    several(suite)
    forms(suite)
    hybrids(suite)


def made_slot(suite, index=1):
    start, length = suite.made["recipients"].parts[f"key slot {index}"]
    return suite.made["recipients"].file[start : start + length]


def credentials(suite):
    intact = suite.intact
    intact("ok-recipients-key", "the key of a vault that also has recipients", "recipients", credential=BY_KEY)
    intact("ok-recipients-another", "the identity of the second recipient", "recipients", credential=BY_OTHER)
    intact(
        "ok-identity-of-most", "the second X25519 slot of 240 slots", "most-slots", credential={"identity": IDENTITY}
    )
    intact("ok-identity-of-most-first", "the first X25519 slot of 240 slots", "most-slots", credential=BY_OTHER)
    passphrase = {"passphrase": PASSPHRASE}
    intact("ok-passphrase-of-most", "the only passphrase slot of 240 slots", "most-slots", credential=passphrase)
    for name, comment, base, credential in (
        ("identity-stranger", "the identity of no recipient", "recipients", BY_STRANGER),
        ("identity-without-recipients", "an identity for a vault without recipients", "small", {"identity": IDENTITY}),
        ("recipients-passphrase", "a passphrase for a vault with a key and recipients", "recipients", passphrase),
        ("recipients-key-is-identity", "the bytes of an identity as a key", "recipients", {"key_text": IDENTITY}),
        ("recipients-key-is-recipient", "the bytes of a recipient as a key", "recipients", {"key_text": RECIPIENT}),
    ):
        intact(f"wrong-{name}", comment, base, f.WRONG_KEY, credential=credential)
    secret = bindings.crypto_scalarmult(IDENTITY, made_slot(suite)[SHARE : SHARE + 32])
    intact(
        "wrong-recipients-shared-secret",
        "the shared secret of a recipient's slot as a key, which is tried on key slots alone",
        "recipients",
        f.WRONG_KEY,
        credential={"key_text": secret},
    )
    suite.resealed(
        "wrong-identity-is-key",
        "a key slot whose key is the shared secret that an identity would have with it",
        "recipients",
        f.WRONG_KEY,
        change=lambda d: d.update(slots=[{"type": "key", "key": secret.hex()}, recipient_slot(OTHER_RECIPIENT)]),
    )
    # The same number for X25519: bits of an identity that it does not use.
    clamped = bytes([IDENTITY[0] & 248]) + IDENTITY[1:31] + bytes([IDENTITY[31] & 127 | 64])
    assert clamped != IDENTITY
    intact(
        "ok-identity-clamped",
        "the identity with the bits set that X25519 sets",
        "recipients",
        credential={"identity": clamped},
    )


def slots(suite):
    """Damage to the slot of an identity's recipient, and to others."""
    places = {
        "id": (4, "slot id", TAMPERED),
        "created": (20, "time of creation", TAMPERED),
        "label": (29, "label", TAMPERED),
        "recipient": (AT, "recipient", f.WRONG_KEY),
        "recipient-last-byte": (AT + 31, "last byte of the recipient", f.WRONG_KEY),
        "share": (SHARE, "ephemeral share", TAMPERED),
        "share-last-byte": (SHARE + 31, "last byte of the ephemeral share", TAMPERED),
        "commitment": (SHARE + 32, "commitment", TAMPERED),
        "commitment-last-byte": (-73, "last byte of the commitment", TAMPERED),
        "nonce": (-72, "nonce", TAMPERED),
        "wrapped-key": (-48, "wrapped key", TAMPERED),
        "tag": (-1, "tag", TAMPERED),
    }
    for name, (offset, what, outcome) in places.items():
        comment = f"the {what} of the recipient's slot"
        suite.flipped(f"recipient-{name}", comment, "recipients", outcome, MINE, offset)
        if name in ("id", "recipient", "share", "commitment", "wrapped-key"):
            more = {"credential": BY_OTHER}
            comment = f"the {what} of another recipient's slot: the MAC is wrong"
            suite.flipped(f"recipient-{name}-of-another", comment, "recipients", TAMPERED, MINE, offset, **more)
            more = {"credential": BY_KEY}
            comment = f"the {what} of a recipient's slot, opened with a key: the MAC is wrong"
            suite.flipped(f"recipient-{name}-by-key", comment, "recipients", TAMPERED, MINE, offset, **more)
    suite.damage(
        "recipient-vault-id",
        "another vault id: the recipient's slot does not open",
        "recipients",
        TAMPERED,
        (28, 1, b"\x5a"),
        reading="A slot of the recipient is there, so this is damage, and not a wrong identity.",
    )
    suite.overwritten(
        "recipient-high-bit",
        "the highest bit of the recipient, which X25519 does not use: it is compared as bytes",
        "recipients",
        f.WRONG_KEY,
        MINE,
        AT + 31,
        bytes([RECIPIENT[31] | 128]),
    )
    for version in (0, 2, 255):
        suite.overwritten(
            f"recipient-version-{version}",
            f"a recipient's slot of version {version}, which is unknown",
            "recipients",
            f.WRONG_KEY,
            MINE,
            1,
            bytes([version]),
        )
    suite.resealed(
        "ok-recipient-version-2-of-another",
        "another recipient's slot of version 2, which is unknown",
        "recipients",
        f.OK,
        {f"{OTHER} header": number(1, "B", 2)},
    )
    other = made_slot(suite, 2)
    suite.overwritten(
        "recipient-renamed",
        "another recipient's slot under the name of this one",
        "recipients",
        TAMPERED,
        OTHER,
        29 + len("another"),
        RECIPIENT,
        credential={"identity": IDENTITY},
    )
    suite.resealed(
        "recipient-of-another",
        "a slot that was sealed to another recipient, under the name of this one",
        "recipients",
        TAMPERED,
        {f"{MINE} header": patch(AT, OTHER_RECIPIENT), f"{OTHER} header": patch(29 + len("another"), RECIPIENT)},
    )
    own, foreign = made_slot(suite), other
    suite.damage(
        "recipients-exchanged",
        "the slots of two recipients exchanged: the MAC is wrong",
        "recipients",
        TAMPERED,
        (suite.place("recipients", MINE), len(own) + len(foreign), foreign + own),
    )
    suite.resealed(
        "recipient-wrapped-another-key",
        "the recipient's slot wraps another master key, to which the header is not committed",
        "recipients",
        TAMPERED,
        {f"{MINE} master key": flip(0)},
    )
    suite.resealed(
        "recipient-commitment-resealed",
        "a wrong commitment in the recipient's slot, under a right MAC",
        "recipients",
        TAMPERED,
        {f"{MINE} commitment": flip(0)},
    )
    suite.resealed(
        "recipient-commitment-resealed-by-key",
        "the same, opened with the key: the slot is not opened",
        "recipients",
        f.OK,
        {f"{MINE} commitment": flip(0)},
        credential=BY_KEY,
    )
    secret = bindings.crypto_scalarmult(IDENTITY, own[SHARE : SHARE + 32])
    head = own[: SHARE + 32]
    vault_id, master = suite.made["recipients"].vault_id, suite.made["recipients"].master
    both = f.blake2b(512, b"coffer-key-slot" + vault_id + head, secret)
    wrapped = f.seal(both[:32], own[-72:-48], vault_id + head, master)
    suite.resealed(
        "recipient-as-key-slot",
        "the recipient's slot is derived as a key slot is",
        "recipients",
        TAMPERED,
        {f"{MINE} commitment": constant(both[32:]), f"{MINE} wrapped key": constant(wrapped)},
    )


def shares(suite):
    """Ephemeral shares that no honest writer makes. The slot is derived from the secret that a careless reader has."""
    made = suite.made["recipients"]
    own = made_slot(suite)

    def sealed_for(share, secret):
        head = own[:SHARE] + share
        wrapping, commitment = f.slot_keys(secret, made.vault_id, head)
        wrapped = f.seal(wrapping, own[-72:-48], made.vault_id + head, made.master)
        return {
            f"{MINE} header": patch(SHARE, share),
            f"{MINE} commitment": constant(commitment),
            f"{MINE} wrapped key": constant(wrapped),
        }

    for name, share in LOW_ORDER.items():
        faults = sealed_for(share, bytes(32))
        comment = f"a share of low order ({name}), and a slot that opens with the secret of zeros"
        suite.resealed(f"recipient-share-{name}", comment, "recipients", TAMPERED, faults)
        high = share[:31] + bytes([share[31] | 128])
        if name in ("zero", "one"):
            faults = sealed_for(high, bytes(32))
            suite.resealed(
                f"recipient-share-{name}-high-bit",
                comment + ", and the highest bit, which X25519 does not use",
                "recipients",
                TAMPERED,
                faults,
            )
    suite.resealed(
        "recipient-share-zero-by-key",
        "a share of low order, opened with the key: the slot is not opened",
        "recipients",
        f.OK,
        sealed_for(bytes(32), bytes(32)),
        credential=BY_KEY,
    )
    share = own[SHARE : SHARE + 32]
    high = share[:31] + bytes([share[31] | 128])
    suite.resealed(
        "ok-recipient-share-high-bit",
        "a share with the highest bit, which X25519 does not use",
        "recipients",
        f.OK,
        sealed_for(high, bindings.crypto_scalarmult(IDENTITY, share)),
        reading="A share is whatever X25519 takes: it is authenticated as bytes.",
    )
    suite.resealed(
        "ok-recipient-share-is-recipient",
        "a share that is the recipient itself",
        "recipients",
        f.OK,
        sealed_for(RECIPIENT, bindings.crypto_scalarmult(IDENTITY, RECIPIENT)),
        reading="Any share that is not of low order is accepted.",
    )


def several(suite):
    """Key slots that must differ."""

    def again(name, slots, comment, by=None):
        change = lambda d: d["slots"].extend(slots)
        suite.resealed(name, comment, "recipients", TAMPERED, change=change, credential=by or {"identity": IDENTITY})

    again("recipient-twice", [recipient_slot(label="again")], "two slots of one recipient")
    again("recipient-twice-by-key", [recipient_slot(label="again")], "two slots of one recipient", BY_KEY)
    again("recipient-twice-by-another", [recipient_slot(label="again")], "two slots of a recipient", BY_OTHER)
    hybrid = [hybrid_slot("first"), hybrid_slot("second")]
    for slot in hybrid:
        slot["bytes"] = hybrid[0]["bytes"][: 2 * 4] + noise(16, slot["bytes"]).hex() + hybrid[0]["bytes"][2 * 20 :]
    again("recipient-hybrid-twice", hybrid, "two slots of one hybrid recipient", BY_KEY)
    suite.resealed(
        "recipient-and-key-one-id",
        "a recipient's slot and a key slot with one id",
        "recipients",
        TAMPERED,
        {f"{slot} header": patch(4, noise(16, "one slot id")) for slot in ("key slot 0", MINE)},
    )
    suite.resealed(
        "ok-recipient-only",
        "a vault with a recipient's slot alone",
        "recipients",
        f.OK,
        change=lambda d: d.update(slots=[recipient_slot()]),
    )


def forms(suite):
    """The form of a recipient's slot is checked even if another slot opens the vault."""
    length = len(made_slot(suite))
    for by, credential in (("", {"identity": IDENTITY}), ("-by-key", BY_KEY)):
        for value in (length - 1, length + 1):
            suite.resealed(
                f"recipient-length-{value}{by}",
                f"a recipient's slot whose length is {value} instead of {length}",
                "recipients",
                TAMPERED,
                {f"{MINE} header": number(2, "H", value)},
                credential=credential,
            )
        suite.resealed(
            f"recipient-byte-more{by}",
            "a byte after the wrapped key of a recipient's slot, counted in the slot's length",
            "recipients",
            TAMPERED,
            {f"{MINE} header": plus(2, "H", 1), f"{MINE} wrapped key": following(b"\0")},
            credential=credential,
        )
        suite.resealed(
            f"recipient-without-share{by}",
            "a recipient's slot without a share, counted in the slot's length",
            "recipients",
            TAMPERED,
            {f"{MINE} header": each(plus(2, "H", -32), lambda head: head[:SHARE])},
            credential=credential,
        )
    for name, label in {"nul": b"r\0", "not-utf8": b"\xff", "65": b"l" * 65}.items():
        suite.resealed(
            f"recipient-label-{name}",
            f"a recipient's slot with a wrong label: {name}",
            "recipients",
            TAMPERED,
            {f"{MINE} header": labelled(label)},
            credential=BY_KEY,
        )
    for name, label in {"empty": "", "64": "é" * 32}.items():
        suite.resealed(
            f"ok-recipient-label-{name}",
            f"a recipient's slot with a label of {len(label.encode())} bytes",
            "recipients",
            f.OK,
            change=lambda d, label=label: d["slots"][1].update(label=label),
        )
    for kind, name in ((1, "passphrase"), (2, "key"), (4, "hybrid")):
        suite.overwritten(
            f"recipient-type-{kind}",
            f"a recipient's slot whose type is {name}: the layout is wrong",
            "recipients",
            TAMPERED,
            MINE,
            0,
            bytes([kind]),
            credential=BY_KEY,
        )
    suite.overwritten(
        "recipient-type-5",
        "a recipient's slot of an unknown type",
        "recipients",
        f.WRONG_KEY,
        MINE,
        0,
        b"\x05",
    )


def hybrids(suite):
    """Hybrid slots, which this version does not open."""

    def with_slot(slot):
        return lambda d: d["slots"].__setitem__(3, slot)

    for name, comment, slot in (
        ("share-one-more", "a ciphertext of 1,121 bytes", hybrid_slot(share=1121)),
        ("share-one-less", "a ciphertext of 1,119 bytes", hybrid_slot(share=1119)),
        ("recipient-one-more", "a recipient of 1,217 bytes", hybrid_slot(recipient=1217)),
        ("short", "the lengths of an X25519 slot", hybrid_slot(recipient=32, share=32)),
        ("label-nul", "a NUL in the label", hybrid_slot(label=b"\0")),
        ("label-not-utf8", "a label that is not UTF-8", hybrid_slot(label=b"\xff")),
        ("label-65", "a label of 65 bytes", hybrid_slot(label=b"l" * 65)),
        ("head-alone", "4 bytes", unknown_slot(4, 1, b"")),
        ("id-alone", "an end after the id", unknown_slot(4, 1, noise(16, "hybrid id"))),
    ):
        suite.resealed(f"hybrid-{name}", f"{comment}, in a hybrid slot", "recipients", TAMPERED, change=with_slot(slot))
    for name, comment, slot in (
        ("label-64", "a label of 64 bytes", hybrid_slot(label="é".encode() * 32)),
        ("version-2", "version 2, of which nothing is checked", unknown_slot(4, 2, b"")),
    ):
        suite.resealed(f"ok-hybrid-{name}", f"{comment}, in a hybrid slot", "recipients", f.OK, change=with_slot(slot))
    key = unknown_slot(2, 1, noise(16, "hybrid id") + struct.pack("<q", NOW) + bytes(1 + 16 + 32 + 72))
    suite.resealed(
        "hybrid-and-key-one-id",
        "a hybrid slot and a key slot with one id",
        "recipients",
        TAMPERED,
        change=lambda d: d["slots"].append(key),
    )
    suite.resealed(
        "hybrids-one-id",
        "two hybrid slots with one id",
        "recipients",
        TAMPERED,
        change=lambda d: d["slots"].append(hybrid_slot(label=b"again")),
    )
    suite.flipped("hybrid-damaged", "damage in a hybrid slot: the MAC is wrong", "recipients", TAMPERED, HYBRID, 1000)
    suite.flipped(
        "hybrid-damaged-by-key",
        "damage in a hybrid slot: the MAC is wrong",
        "recipients",
        TAMPERED,
        HYBRID,
        1000,
        credential=BY_KEY,
    )
    suite.resealed(
        "wrong-identity-hybrid-only",
        "an X25519 identity, and a hybrid slot that begins with its recipient",
        "recipients",
        f.WRONG_KEY,
        change=lambda d: d.update(slots=[d["slots"][0], beginning_with(RECIPIENT)]),
    )


def beginning_with(recipient):
    slot = bytes.fromhex(hybrid_slot()["bytes"])
    return {"type": "raw", "bytes": (slot[:29] + recipient + slot[29 + len(recipient) :]).hex()}
