"""X-Wing: ML-KEM-768 and X25519 together, with the package `cryptography`, 48 or later, which only its users need."""

import hashlib
import os

LABEL = b"\\.//^\\"
CIPHERTEXT, PUBLIC_KEY = 1088, 1184  # of ML-KEM-768


def keys(seed):
    """The secret keys of both halves."""
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    expanded = hashlib.shake_256(seed).digest(96)
    return MLKEM768PrivateKey.from_seed_bytes(expanded[:64]), X25519PrivateKey.from_private_bytes(expanded[64:])


def combined(shared, other, share, public_key):
    return hashlib.sha3_256(shared + other + share + public_key + LABEL).digest()


def recipient(seed):
    mlkem, x25519 = keys(seed)
    return mlkem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()


def decapsulate(seed, share):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    mlkem, x25519 = keys(seed)
    other = x25519.exchange(X25519PublicKey.from_public_bytes(share[CIPHERTEXT:]))
    return combined(mlkem.decapsulate(share[:CIPHERTEXT]), other, share[CIPHERTEXT:], x25519.public_key().public_bytes_raw())


def encapsulate(recipient):
    """A new shared secret, and the share for the recipient."""
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    shared, ciphertext = MLKEM768PublicKey.from_public_bytes(recipient[:PUBLIC_KEY]).encapsulate()
    ephemeral = X25519PrivateKey.from_private_bytes(os.urandom(32))
    other = ephemeral.exchange(X25519PublicKey.from_public_bytes(recipient[PUBLIC_KEY:]))
    share = ephemeral.public_key().public_bytes_raw()
    return combined(shared, other, share, recipient[PUBLIC_KEY:]), ciphertext + share
