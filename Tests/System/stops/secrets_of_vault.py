"""The secrets that a vault file and its credentials imply, and the spellings in which they are searched for."""

import base64
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Vectors"))

from nacl import bindings  # noqa: E402

import vault_format as f  # noqa: E402
import vault_identities as i  # noqa: E402
import vault_reader as r  # noqa: E402

SUBKEYS = range(1, 9)


IDENTITY = b"AGE-SECRET-KEY-1"


def of_identity_file(text):
    """The identities in a file, all of X25519."""
    return [i.parse_identity(line.decode()) for line in text.split() if line.startswith(IDENTITY)]


def of_credentials(keys, passphrases, identities):
    """Names and bytes of keys and identities, in binary and as text, and of passphrases."""
    found = {(f"key {number}", key) for number, key in enumerate(keys)}
    for number, key in enumerate(keys):
        text = f.key_text(key).removeprefix(f.KEY_TEXT_PREFIX)
        found.add((f"text of key {number}", text))
        # As a recovery key is printed.
        found.add((f"text of key {number}", b" ".join(text[i : i + 6] for i in range(0, len(text), 6))))
    for number, identity in enumerate(identities):
        text = i.encode(i.IDENTITY, identity).encode().removeprefix(IDENTITY)
        found |= {(f"identity {number}", identity), (f"text of identity {number}", text)}
    return found | {(f"passphrase {number}", one) for number, one in enumerate(passphrases)}


def of_vault(data, keys, passphrases, stretched, identities):
    """Names and bytes of everything secret in the vault in the bytes `data`. `stretched` caches Argon2."""
    header, found, master = f.parse_header(data), set(), None
    for slot in (slot for slot in header.slots if slot.known):
        for secret in candidates(slot, keys, passphrases, stretched, identities):
            wrapping, commitment = f.slot_keys(secret, header.vault_id, slot.header)
            if commitment == slot.commitment:
                master = f.open_seal(wrapping, header.vault_id + slot.header, slot.wrapped, "the master key")
                found |= {("slot key", wrapping), ("message key", message_key(wrapping, slot.wrapped))}
                if slot.type == f.PASSPHRASE_SLOT:
                    found.add(("Argon2 output", secret))
                if slot.type == f.X25519_SLOT:
                    found.add(("shared secret", secret))
    if master is None:
        raise AssertionError("no credential of the scenario opens its vault")
    vault = r.read_with_master(data, header, master)
    found.add(("master key", master))
    found |= {(f"subkey {number}", f.subkey(master, number)) for number in SUBKEYS}
    found |= {("former subkey", key) for key in vault.root.lineage}
    entries = [entry for entries in vault.entries.values() for entry in entries]
    values = f.subkey(master, f.VALUES)
    found |= {("message key", message_key(values, entry.sealed_value)) for entry in entries if entry.sealed_value}
    return found | {("value", entry.value) for entry in entries if len(entry.value) >= 8}


def message_key(key, sealed):
    """HChaCha20 of the key and the first 16 bytes of the nonce: with it, one message opens."""
    state = list(struct.unpack("<16I", b"expand 32-byte k" + key + sealed[:16]))

    def quarter(a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = state[x] + state[y] & 0xFFFFFFFF
            state[z] ^= state[x]
            state[z] = (state[z] << bits | state[z] >> 32 - bits) & 0xFFFFFFFF

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for row in range(4):
            quarter(row, 4 + (row + 1) % 4, 8 + (row + 2) % 4, 12 + (row + 3) % 4)
    return struct.pack("<8I", *state[:4], *state[12:])


def candidates(slot, keys, passphrases, stretched, identities):
    if slot.type == f.X25519_SLOT:
        return [bindings.crypto_scalarmult(identity, slot.share) for identity in identities]
    if slot.type != f.PASSPHRASE_SLOT:
        return keys
    for passphrase in passphrases:
        cost = passphrase, slot.salt, slot.passes, slot.memory_kib
        if cost not in stretched:
            stretched[cost] = f.argon2id(*cost)
    return [stretched[passphrase, slot.salt, slot.passes, slot.memory_kib] for passphrase in passphrases]


def spellings(secrets):
    """Lines for `stops search`: name, least length of a hit, bytes. Every hit has at least 8 bytes of a secret."""
    lines = set()
    for name, secret in secrets:
        lines.add((name, 8, secret))
        for digits in (secret.hex(), secret.hex().upper()):
            lines.add((f"{name} in hexadecimal", 16, digits.encode()))
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            for before in range(3):
                # Without the characters that also encode bits of the bytes before and after the secret.
                encoded = encode(bytes(before) + secret)[-(-8 * before // 6) :].rstrip(b"=")
                lines.add((f"{name} in base64", 11, encoded if (before + len(secret)) % 3 == 0 else encoded[:-1]))
    return "".join(
        f"{name.replace(' ', '_')} {least} {data[:50_000].hex()}\n" for name, least, data in sorted(lines)
    )
