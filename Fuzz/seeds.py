#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: hand-written inputs, and the decrypted parts of every vault in Tests/Vectors.

usage: seeds.py DIRECTORY     writes the seeds of each target to DIRECTORY/TARGET
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "Tests" / "Vectors"
sys.path.insert(0, str(VECTORS))

import vault_format as f  # noqa: E402
import vault_identities as identities  # noqa: E402
import vault_reader as r  # noqa: E402
import vault_records as p  # noqa: E402

# In bytes. A larger seed slows the fuzzer down more than it helps.
LARGEST = 4096
# For each target.
MOST_SEEDS = 120

(PUT, RAW_PUT, REMOVE, RAW_REMOVE, ITEM, RAW_ITEM, END_OF_BLOCK, COMMIT_EDIT, ROOT_EDIT, BLOCK_EDIT,
 FRAME_EDIT, RECENT_CHANGES, HEADER_FIELDS, PADDED_VALUE, PADDED_FRAME, LINEAGE, OPERATIONS, KEY_SLOT,
 ROOT_FIELD, BASE_SEQUENCE) = range(20)
# The operations of VaultOperations.
OPERATION_COUNT = 12


def part(kind, body=b""):
    return struct.pack("<BH", kind, len(body)) + body


def frame(kind, names, fields):
    """The plaintext of a frame, with zeros in the numbers of its record."""
    put = bytes(28) if kind == p.PUT else b""
    return bytes(24) + bytes([kind]) + bytes(8) + put + names + fields


def parts_of(file, credential):
    """The vault, and the name and plaintext of each of its seals in the order in which a reader opens them."""
    found = []
    original = f.open_seal

    def recording(key, associated, sealed, what, *check, **named):
        plaintext = original(key, associated, sealed, what, *check, **named)
        found.append((what, plaintext))
        return plaintext

    f.open_seal = recording
    try:
        vault = r.read_vault(file, credential)
    finally:
        f.open_seal = original
    return vault, found


def seeds():
    """Yields pairs of a target and an input."""
    yield from written_by_hand()
    yield from written_for_programs()
    yield from taken_from_vectors()


def written_by_hand():
    yield "sealed-vault", b""
    fields = bytes(4)
    record = frame(1, b"\x01\x00s\x01\x00%d", fields)
    remove = frame(2, b"\x01\x00s\x01\x000", fields)
    names = [record.replace(b"%d", b"%d" % digit) for digit in range(8)]
    base = b"".join(part(ITEM, b"\x03abc" + name) for name in names[:4])
    second = b"".join(part(ITEM, b"\x00" + name) for name in names[4:])
    changes = part(RECENT_CHANGES, struct.pack("<QQ16sQ16s", 1, 1, b"a" * 16, 2, b"b" * 16))
    yield "sealed-vault", base + part(END_OF_BLOCK) + second
    yield "sealed-vault", changes + base + part(END_OF_BLOCK) + second
    yield "sealed-vault", base + part(REMOVE, remove) + part(PUT, b"\x02xy" + names[1])
    versions = part(ITEM, b"\x01a" + names[0]) + part(ITEM, b"\x01b" + names[0]) + part(ITEM, b"\x00" + remove)
    yield "sealed-vault", versions + part(END_OF_BLOCK) + part(PUT, b"\x01c" + names[0])
    yield "sealed-vault", part(LINEAGE, bytes(64)) + versions
    # The second put wins over the first in a merge; the third keeps nothing.
    lost = names[0][:-4] + p.encode_fields([(p.CONFLICT, struct.pack("<Q", 3))])
    nothing = names[0][:-4] + p.encode_fields([(p.KEEPS_NOTHING, b"")])
    merged = part(ITEM, b"\x01a" + lost) + part(ITEM, b"\x01b" + names[0])
    for code in (0, 4, 5, 8, 9, 11):
        yield "sealed-vault", part(OPERATIONS, bytes([code])) + merged
        yield "sealed-vault", part(OPERATIONS, bytes([code])) + merged + part(PUT, b"\x01c" + nothing)
    whole = base + part(END_OF_BLOCK) + second + part(PUT, b"\x02xy" + names[1]) + part(REMOVE, remove)
    for code in range(OPERATION_COUNT):
        yield "sealed-vault", part(OPERATIONS, bytes([code])) + changes + whole
        yield "sealed-vault", part(OPERATIONS, bytes([code, (code * 7 + 16 * code) % 256])) + versions
    last = struct.pack("<Q", (1 << 62) - 2)
    recipient = b"\x03\x01\x80\x00" + bytes(25) + b"\x09" + bytes(31)
    for more in (
        part(KEY_SLOT, b"\xc8\x01\x00\x40"), part(ROOT_FIELD, b"\x00\x10\x00\x20"), part(BASE_SEQUENCE, last),
        part(COMMIT_EDIT, b"\x40\x00"), part(COMMIT_EDIT, b"\x00" + b"\xff" * 7 + b"\x3f"), part(LINEAGE, bytes(32)),
        part(KEY_SLOT, recipient),
    ):
        yield "sealed-vault", more + part(OPERATIONS, b"\x00\x05") + versions
    yield "sealed-vault", part(RAW_ITEM, b"\x01a" + b"i" * 16 + b"\x01" + bytes(7) + names[0][24:])
    for unknown in (0x7, 0x2007, 0x4007):
        field = names[0][:-4] + p.encode_fields([(unknown, b"x")])
        yield "sealed-vault", part(PUT, b"\x01a" + record[:-4] + p.encode_fields([(unknown, b"x")]))
        yield "sealed-vault", part(OPERATIONS, b"\x00\x04") + part(ITEM, b"\x01a" + field) + part(ROOT_FIELD, struct.pack("<HH", unknown, 3))
    for kind, body in [
        (COMMIT_EDIT, b"\x00\x09"), (COMMIT_EDIT, b"\x2c\x05"), (ROOT_EDIT, b"\x08\x00\x05"), (ROOT_EDIT, b"\x54\x00\x07\x80"),
        (BLOCK_EDIT, b"\x10\x00\x05"), (HEADER_FIELDS, bytes([0, 0, 0, 0, 1, 0, 0, 0])),
        (PADDED_VALUE, b"\x80" + bytes(31)),
    ]:
        yield "sealed-vault", part(kind, body) + base + part(END_OF_BLOCK)
    yield "sealed-vault", part(FRAME_EDIT, b"\x18\x00\x02") + part(PUT, b"\x02xy" + names[1])
    padded = (names[1] + b"\x80").ljust(96, b"\0")
    yield "sealed-vault", part(PADDED_FRAME, padded) + part(PUT, b"\x02xy" + names[1])
    yield "recent-changes", struct.pack("<IIQ16sQ16s", 1, 3, 1, b"a" * 16, 2, b"b" * 16)
    yield "recent-changes", struct.pack("<IIQ16sQ16s", 1, 3, 1, b"a" * 16, 1, b"b" * 16)
    yield "recent-changes", struct.pack("<IIQ16sQ16s", 1, 3, 2, b"a" * 16, 1, b"b" * 16)
    text = identities.encode(identities.IDENTITY, bytes(range(32)))
    for more in (f"# created\n{text}\r\n\n{text}\n", identities.encode(identities.HYBRID_IDENTITY, bytes(32))):
        yield "age-text", more.encode()
    yield "age-text", identities.encode(identities.HYBRID_RECIPIENT, bytes(1216)).encode()
    for record in json.loads((VECTORS / "known_vaults.json").read_text("ascii"))["records"].values():
        yield "known-vault", bytes.fromhex(record)[:496]
    for vector in json.loads((VECTORS / "key_text.json").read_text("ascii")):
        yield "key-text", vector["text"].encode()
    for vector in json.loads((VECTORS / "identities.json").read_text("ascii")):
        yield "age-text", vector["text"].encode()
        if "recipient" in vector["expect"]:
            yield "age-text", vector["expect"]["recipient"].encode()
    for vector in json.loads((VECTORS / "pins.json").read_text("ascii")):
        for pin in vector.get("pins") or [vector["pin"]]:
            yield "pin-text", pin.encode()
    identifier = "0123456789abcdef0123456789abcdef"
    for text in [
        "", "backend = vault\n", "backend=keyring", "# a comment\n\n  backend = vault  \n",
        f'[key-files]\n{identifier} = "/home/a/key"\n', f"backend = 'vault'\n[key-files]\n{identifier} = '/k'\n",
        "backend = 'x'\n",
        "backend = 'vault'\r\n", "[key-files]\n", "x\n",
    ]:
        yield "configuration", text.encode()


def written_for_programs():
    for text in [
        "A=1\n", "export B='two words'\n# comment\nC=\"a\\n\\\"\\$\\`\\\\\"\r\n", "A=\n\nB='x\ny'\n", "A=1 # behind\n", "A=$B\n",
        "A=1\nA=2\n", "export\tA=1", "=x\n", "A='unclosed\nB=2\n", "1A=x\n", "A=\"\\x\"\n", "A\n",
    ]:
        yield "dotenv", text.encode()
    for text in [
        'vault = "v"\n', "service = 's' # c\n[run]\nredact = true\n", '[variables]\nA = "a"\nB = { value = "b\\n\\u00e9" }\n',
        '[profiles.p.variables]\nA = { secret = "a", optional = true }\n[profiles.q]\n', "[ a . b ]\r\nc={}\r\n", "[variables]\nPATH = 'x'\n",
        'a = """x"""\n', "a = 1\n", "a = 'x'\na = 'y'\n",
    ]:
        yield "project-file", text.encode()
    whole = {
        "service": "s", "account": "a", "value": "v", "label": "l", "created": "2026-01-31T12:00:00Z",
        "expires": "2027-01-31T12:00:00Z", "attributes": {"url": "https://h"},
    }
    for entries in [[], [whole], [{"account": "a", "base64": "AAH/"}], [{"account": "a"}], [whole, whole], [{"x": 1}]]:
        yield "exchange-json", json.dumps({"coffer-secrets": 1, "secrets": entries}).encode()
    yield "exchange-json", json.dumps({"coffer-secrets": 2, "secrets": []}).encode()
    yield "exchange-json", b'{"coffer-secrets":1,"secrets":[{"account":"\\u00e9","value":"\\ud83d\\ude00"}]}'
    for text in [
        "protocol=https\nhost=h:8443\npath=a/b\nusername=u\npassword=p\n\n", "protocol=https\nhost=h\n",
        "capability[]=authtype\ncapability[]=state\nprotocol=https\nhost=h\nauthtype=Bearer\ncredential=t\n",
        "capability[]=\nwwwauth[]=Basic realm=x\nprotocol=cert\npath=/k\nusername=(x\n",
        "protocol=https\nhost=h\npassword_expiry_utc=1900000000\noauth_refresh_token=r\nstate[]=a\nquit=1\n", "no equals\n",
    ]:
        yield "git-credential", text.encode()
    for text in [
        "https://index.docker.io/v1/\n", " \t\r\n", '{"ServerURL":"https://h","Username":"u","Secret":"s"}', '{"ServerURL":1}',
        '{"Username":"\\u0000"}', "[]",
    ]:
        yield "docker-credential", text.encode()
    for text in [
        "a {{ secret://s/a }} b", "x: secret://s/a%2Fb\n", "{{secret://s/a", "secret://", "{{ secret://s/a/b }}", "{{ x }}{",
        "secret://s/a/b", "{{\tsecret://%73/a%20b\t}}{{secret://s/a}}", "secret://s/%zz",
    ]:
        yield "template", text.encode()
    for vector in json.loads((VECTORS / "key_text.json").read_text("ascii")):
        text = vector["text"]
        yield "recovery-key", text.encode()
        body = text.removeprefix("coffer-key-v1:")
        yield "recovery-key", "\n".join(body[at : at + 6] for at in range(0, len(body), 6)).encode()
    for value, text in [
        (b"hunter2", b"a hunter2 b aHVudGVyMg== c"), (b"aaaa", b"aaaaaaa"), (b"abcd\n", b"xabcdy\nabcd\n"), (b"abc", b"abcabc"),
        (b"abcabd", b"abcabcabd"),
    ]:
        for step in (0, 2, 15):
            yield "redaction", bytes([len(value), step]) + value + text


def taken_from_vectors():
    credentials = {}
    for vector in json.loads((VECTORS / "vectors.json").read_text("ascii")):
        if vector["expect"]["outcome"] == "ok" and not vector.get("edits"):
            credentials[vector["vault"]] = vector["credential"]
    for name in sorted(credentials):
        if name == "default-cost.vault":
            continue
        file = (VECTORS / name).read_bytes()
        given = credentials[name]
        if "identity" in given:
            continue
        if "key_text" in given:
            credential = r.Key(f.parse_key_text(given["key_text"].encode()))
        else:
            credential = r.Passphrase(given["passphrase"].encode())
        vault, found = parts_of(file, credential)
        header = vault.header
        yield "header", header.raw[: header.length]
        position = 64
        for slot in header.slots:
            length = int.from_bytes(header.raw[position + 2 : position + 4], "little")
            yield "key-slot", header.raw[position : position + length]
            position += length
        state = vault.state
        composed = b""
        for what, plaintext in found:
            if what == "a commit slot":
                yield "commit-state", plaintext[:80]
            elif what == "the root":
                yield "root", struct.pack("<I", state.root_offset) + plaintext
            elif what == "the recent":
                yield "recent-changes", struct.pack("<II", vault.root.floor, vault.root.sequence) + plaintext
            elif what == "the block":
                yield "block", block(plaintext)
            elif what == "a frame's metadata":
                data = f.unpad(plaintext, what)
                yield "frame", data
                is_put = data[24] == 1
                if len(data) > LARGEST:
                    continue
                body = b"\x05value" + data if is_put else data
                one = part(PUT if is_put else REMOVE, body)
                yield "sealed-vault", one
                yield "sealed-vault", part(ITEM, body) + one if is_put else one
                composed = (composed + one)[:2000]
        yield "sealed-vault", composed


def block(plaintext):
    """The input of the target `block`, of the first items: their number, the offset of the block after their values in units
    of 8 bytes, and its bytes."""
    first = p.DIRECTORY_ENTRY.unpack_from(plaintext)[2]
    places = [p.DIRECTORY_ENTRY.unpack_from(plaintext, at) for at in range(0, first, p.DIRECTORY_ENTRY.size)]
    ends = [place for _, _, place in places[1:]] + [len(plaintext)]
    count = min(4, len(places))
    directory, items, size = b"", b"", 0
    for (identifier, sequence, place), end in list(zip(places, ends))[:count]:
        item = plaintext[place:end]
        directory += p.DIRECTORY_ENTRY.pack(identifier, sequence, count * p.DIRECTORY_ENTRY.size + len(items))
        if item[0] == p.PUT:
            item = item[:-8] + p.PLACE.pack(16384 + size)
            size += int.from_bytes(item[17:21], "little")
        items += item
    return bytes([count]) + struct.pack("<H", size // 8 % 65536) + directory + items


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    directory = Path(sys.argv[1])
    written = {}
    for target, data in seeds():
        folder = directory / target
        folder.mkdir(parents=True, exist_ok=True)
        if len(data) <= LARGEST and written.get(target, 0) < MOST_SEEDS:
            path = folder / hashlib.blake2b(data, digest_size=10).hexdigest()
            if not path.exists():
                path.write_bytes(data)
                written[target] = written.get(target, 0) + 1
    print(", ".join(f"{target}: {count}" for target, count in sorted(written.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
