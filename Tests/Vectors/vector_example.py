"""example.txt: the worked example, printed from example.vault."""

from nacl import bindings

import known_vaults as k
import vault_format as f
import vault_identities as identities
import vault_pins as pins
import vault_reader as r
import vault_records as p
from vector_bases import EXAMPLE_IDENTITY, EXAMPLE_KEY

PATH = b"/v/example.vault"
LABEL, DIGITS = 22, 96


def lines(name, data):
    """A name and bytes in hexadecimal, 48 in a line."""
    digits = data.hex()
    first = [(name.ljust(LABEL) + digits[:DIGITS]).rstrip()]
    return first + [" " * LABEL + digits[at : at + DIGITS] for at in range(DIGITS, len(digits), DIGITS)]


def text(suite):
    """The whole example."""
    made = suite.made["example"]
    vault = r.read_vault(made.file, r.Key(EXAMPLE_KEY))
    return "\n".join([*keys(vault), *parts(made, vault), *frame(made, vault), *known_vault(vault)]) + "\n"


def keys(vault):
    yield from lines("key", EXAMPLE_KEY)
    yield "key text".ljust(LABEL) + f.key_text(EXAMPLE_KEY).decode()
    yield from lines("master key K", vault.master)
    for number in range(1, 9):
        yield from lines(f"subkey {number}", f.subkey(vault.master, number))


def parts(made, vault):
    header, file = vault.header, made.file
    yield from lines("vault id", header.vault_id)
    yield from lines("file id", header.file_id)
    yield from key_slots(header)
    yield from lines("master key commitment", header.commitment)
    yield from lines("header MAC", header.mac)
    yield from lines("lookup key", vault.root.lookup_key)
    entry = next(one for one in vault.secrets() if one.record.sequence == 1)
    yield from value(header, entry)
    yield from part(made, vault, "block 0", b"block")
    yield from part(made, vault, "recent", b"recent")
    yield from part(made, vault, "root", b"root")
    start, _ = made.parts["commit slot 1"]
    yield "commit slot 1"
    yield from lines("  state, 0…63", vault.states[1].encode()[:64])
    yield from lines("  associated data", f.commit_associated(1, header.mac))
    yield from lines("  nonce", file[start : start + 24])
    yield from lines("  tag", file[start + f.PAGE - 16 : start + f.PAGE])


def key_slots(header):
    first, second = header.slots
    shared = bindings.crypto_scalarmult(EXAMPLE_IDENTITY, second.share)
    for number, slot, secret in ((0, first, EXAMPLE_KEY), (1, second, shared)):
        if slot.type == f.X25519_SLOT:
            yield "identity".ljust(LABEL) + identities.encode(identities.IDENTITY, EXAMPLE_IDENTITY)
            yield "recipient".ljust(LABEL) + identities.encode(identities.RECIPIENT, slot.recipient)
        yield from lines(f"slot {number}: its header", slot.header)
        if slot.type == f.X25519_SLOT:
            yield from lines("  shared secret", shared)
        wrapping, commitment = f.slot_keys(secret, header.vault_id, slot.header)
        yield from lines("  KEK", wrapping)
        yield from lines("  commitment", commitment)
        yield from lines("  wrapped master key", slot.wrapped)


def part(made, vault, name, label):
    """A sealed part of the base."""
    start, length = made.parts[name]
    sealed = made.file[start : start + length]
    associated = p.part_associated(label, vault.header.file_id, start)
    key = f.subkey(vault.master, f.BASE)
    yield f"{name} at {start}:"
    yield from lines("  associated data", associated)
    yield from lines("  plaintext", f.open_seal(key, associated, sealed, name))
    yield from lines("  sealed", sealed)


def value(header, entry):
    record = entry.record
    yield from lines("lookup id", record.lookup_id)
    yield from lines("value: assoc. data", p.value_associated(header.vault_id, *record.position))
    yield from lines("  sealed", entry.sealed_value)


def frame(made, vault):
    header, one = vault.header, vault.frames[0]
    data = made.file[one.offset : one.offset + one.length]
    entry = next(found for found in vault.secrets() if found.record.sequence == one.sequence)
    padded = f.pad(p.encode_metadata(entry.record))
    length, key = p.LENGTH.pack(len(padded)), f.subkey(vault.master, f.FRAME_LENGTHS)
    yield from value(header, entry)
    yield f"frame at {one.offset}:"
    yield from lines("  metadata, padded", padded)
    associated = p.frame_associated(header.file_id, one.offset, length, vault.state.root_tag)
    yield from lines("  associated data", associated)
    yield from lines("  m, mask", length + bindings.crypto_shorthash_siphash24(data[4:28], key[:16])[:4])
    yield from lines("  whole frame", data)
    yield from lines("pin: digest", pins.pin_digest(vault, vault.state.sequence, vault.state.tail_tag))
    yield "  text".ljust(LABEL) + pins.pin_of(vault).encode()


def known_vault(vault):
    slot = k.seen_now(vault, PATH, k.STRICT).encode()
    yield "known vault: path".ljust(LABEL) + PATH.decode()
    yield "  name of the record".ljust(LABEL) + k.record_name(PATH)
    yield from lines("  slot, 0…87", slot[:88])
    yield from lines("  MAC, 88…119", slot[88:120])
    yield from lines("  hash, 496…511", slot[496:])
