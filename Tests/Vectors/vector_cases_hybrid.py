"""hybrid.json: key slots of a hybrid recipient that an identity opens. Readers need X-Wing for these alone."""

import hashlib

import vault_format as f
from vector_bases import CI_KEY, IDENTITY, noise, recipient_slot
from vector_hybrid_kem import IDENTITY as HYBRID_IDENTITY, KEM_SECRET, RECIPIENT, SECRET, SHARE
from vector_suite import TAMPERED, constant, flip, patch

BASE, SLOT = "hybrid", "key slot 1"
AT = 29 + len("hybrid") + 1216  # where the share is in its slot
X25519 = AT + 1088  # and where the share of X25519 is


def add(suite):
    suite.intact("ok-hybrid", "the identity of a hybrid recipient", BASE)
    suite.intact("ok-hybrid-by-key", "the key of the same vault", BASE, credential={"key_text": CI_KEY})
    stranger = {"hybrid_identity": noise(32, "the identity of a stranger")}
    suite.intact("wrong-hybrid-stranger", "another hybrid identity", BASE, f.WRONG_KEY, credential=stranger)
    x25519 = {"identity": HYBRID_IDENTITY}
    suite.intact("wrong-hybrid-x25519", "the same bytes as an X25519 identity", BASE, f.WRONG_KEY, credential=x25519)
    for name, what, offset in (
        ("kem", "first byte of ML-KEM's ciphertext, from which comes another secret", AT),
        ("kem-last", "last byte of ML-KEM's ciphertext", X25519 - 1),
        ("x25519", "first byte of the share of X25519", X25519),
        ("x25519-last", "last byte of the share of X25519", X25519 + 31),
    ):
        suite.flipped(f"hybrid-share-{name}", f"the {what}", BASE, TAMPERED, SLOT, offset)
        faults = {f"{SLOT} header": flip(offset)}
        suite.resealed(f"hybrid-share-{name}-resealed", f"the {what}, under a right MAC", BASE, TAMPERED, faults)
    suite.resealed("hybrid-commitment", "a wrong commitment", BASE, TAMPERED, {f"{SLOT} commitment": flip(0)})
    suite.resealed("hybrid-wrapped-key", "the slot wraps another master key", BASE, TAMPERED, {f"{SLOT} master key": flip(0)})
    for name, share in (("zero", bytes(32)), ("one", b"\1" + bytes(31))):
        # The secret that a reader has who does not look at what X25519 gives.
        careless = KEM_SECRET + bytes(32) + share + RECIPIENT[-32:] + b"\\.//^\\"
        resealed(suite, f"low-order-{name}", f"a share of X25519 of low order ({name})", X25519, share, careless)
    context = "the slot is derived as a key slot is"
    made = suite.made[BASE]
    start, length = made.parts[SLOT]
    head = made.file[start : start + length][: AT + 1120]
    both = f.blake2b(512, b"coffer-key-slot" + made.vault_id + head, SECRET)
    wrapped = f.seal(both[:32], bytes(24), made.vault_id + head, made.master)
    faults = {f"{SLOT} commitment": constant(both[32:]), f"{SLOT} wrapped key": constant(wrapped)}
    suite.resealed("hybrid-as-key-slot", context, BASE, TAMPERED, faults)
    suite.resealed(
        "ok-hybrid-beside-x25519",
        "the identity of an X25519 recipient of the same vault",
        BASE,
        f.OK,
        credential={"identity": IDENTITY},
        change=lambda d: d["slots"].append(recipient_slot()),
    )


def resealed(suite, name, comment, offset, share, message):
    """The slot with another share, sealed with the secret that is the hash of the message."""
    made = suite.made[BASE]
    start, length = made.parts[SLOT]
    head = patch(offset, share)(made.file[start : start + length][: AT + 1120])
    wrapping, commitment = f.slot_keys(hashlib.sha3_256(message).digest(), made.vault_id, head)
    wrapped = f.seal(wrapping, bytes(24), made.vault_id + head, made.master)
    faults = {f"{SLOT} header": constant(head), f"{SLOT} commitment": constant(commitment)}
    suite.resealed(f"hybrid-{name}", comment, BASE, TAMPERED, faults | {f"{SLOT} wrapped key": constant(wrapped)})
