"""The worked example of VaultFormat.md: printed from example.vault, and compared with the page."""

import os
import struct

import known_vaults as k
import vault_format as f
import vault_reader as r
import vault_records as p
from vector_bases import EXAMPLE_KEY

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Sources/CofferVault/Vault.docc/VaultFormat.md")
HEADING = "## Worked example"
PATH = b"/v/example.vault"
LABEL, DIGITS = 22, 96


def lines(name, data):
    """A name and bytes in hexadecimal, 48 in a line."""
    digits = data.hex()
    first = [(name.ljust(LABEL) + digits[:DIGITS]).rstrip()]
    return first + [" " * LABEL + digits[at : at + DIGITS] for at in range(DIGITS, len(digits), DIGITS)]


def text(suite):
    """The block of the example."""
    made = suite.made["example"]
    vault = r.read_vault(made.file, r.Key(EXAMPLE_KEY))
    return "\n".join([*keys(vault), *parts(made, vault), *frame(made, vault), *known_vault(vault)]) + "\n"


def keys(vault):
    yield from lines("key", EXAMPLE_KEY)
    yield "key text".ljust(LABEL) + f.key_text(EXAMPLE_KEY).decode()
    yield from lines("master key K", vault.master)
    for number in range(1, 10):
        yield from lines(f"subkey {number}", f.subkey(vault.master, number))


def parts(made, vault):
    header, file = vault.header, made.file
    slot = header.slots[0]
    wrapping, commitment = f.slot_keys(EXAMPLE_KEY, header.vault_id, slot.header)
    yield from lines("vault id", header.vault_id)
    yield from lines("file id", header.file_id)
    yield from lines("key slot: its header", slot.header)
    yield from lines("  KEK", wrapping)
    yield from lines("  commitment", commitment)
    yield from lines("  wrapped master key", slot.wrapped)
    yield from lines("master key commitment", header.commitment)
    yield from lines("header MAC", header.mac)
    start, _ = made.parts["root"]
    index = p.Root(vault.root.sequence, 0, vault.root.fields, ()).encode()
    yield from lines(f"root at {start}: index", index)
    start, _ = made.parts["commit slot 1"]
    yield "commit slot 1"
    yield from lines("  state, 0…87", vault.states[1].encode()[:88])
    yield from lines("  associated data", f.commit_associated(1, header.raw))
    yield from lines("  nonce", file[start : start + 24])
    yield from lines("  tag", file[start + f.PAGE - 16 : start + f.PAGE])


def frame(made, vault):
    header, one = vault.header, vault.frames[0]
    data = made.file[one.offset : one.offset + one.length]
    entry = vault.secrets()[0]
    metadata = struct.pack("<I", len(entry.sealed_value)) + entry.record.encode()
    padded = f.pad(metadata)
    length, key = p.LENGTH.pack(len(padded)), f.subkey(vault.master, f.FRAME_LENGTHS)
    yield from lines("lookup id", entry.record.lookup_id)
    yield from lines("value: assoc. data", p.value_associated(header.vault_id, entry.record.lookup_id, one.sequence))
    yield from lines("  sealed", entry.sealed_value)
    yield from lines(f"frame at {one.offset}:", b"")
    yield from lines("  metadata, padded", padded)
    yield from lines(
        "  associated data", p.metadata_associated(header.file_id, one.offset, length, vault.state.root_tag)
    )
    yield from lines("  m, mask", length + f.blake2b(128, data[4:28], key)[:4])
    yield from lines("  whole frame", data)
    yield "checkpoint".ljust(LABEL) + vault.checkpoint


def known_vault(vault):
    slot = k.seen_now(vault, PATH, k.STRICT).encode()
    yield "known vault: path".ljust(LABEL) + PATH.decode()
    yield "  name of the record".ljust(LABEL) + k.record_name(PATH)
    yield from lines("  slot, 0…87", slot[:88])
    yield from lines("  MAC, 88…119", slot[88:120])
    yield from lines("  hash, 496…511", slot[496:])


def current():
    """The page in three parts: before the example, the example, and after it."""
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    start = page.index("```text\n", page.index(HEADING)) + len("```text\n")
    end = page.index("```\n", start)
    return page[:start], page[start:end], page[end:]


def failures(example):
    if current()[1] != example:
        yield "the worked example of VaultFormat.md is not what generate.py makes"


def write(example):
    before, _, after = current()
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write(before + example + after)
