"""The vault file, format 1: the primitives, and the conversion of bytes to values and back.

Written from VaultFormat.md alone. This module reads and writes no file, and uses no random number and no clock.
"""

import base64
import hashlib
import struct
from dataclasses import dataclass

from nacl import bindings, exceptions

# Every u64 is below this limit.
U64_LIMIT = 1 << 62

MAGIC = b"\x89COF\r\n\x1a\n"
MAJOR = 1
PAGE = 4096
MAXIMUM_HEADER = 65_536
MAXIMUM_KEY_SLOTS = 16
SEAL_OVERHEAD = 40
PADDING = 32
MAXIMUM_VALUE = 16_777_216
MAXIMUM_METADATA = 65_536
MAXIMUM_BLOCK = 1 << 20

KEY_TEXT_PREFIX = b"coffer-key-v1:"

# The numbers of the subkeys.
HEADER, COMMITS, METADATA, VALUES, BASE, LOOKUP_IDS, WATERMARK = range(1, 8)

# The outcomes of the specification. OK, RECOVERED and INVALID_KEY are names of this implementation.
OK = "ok"
RECOVERED = "recovered"
NOT_A_VAULT = "not-a-vault"
UNSUPPORTED_VERSION = "unsupported-version"
TAMPERED = "tampered"
WRONG_KEY = "wrong-key"
COST_LIMIT_EXCEEDED = "cost-limit-exceeded"
INVALID_KEY = "invalid-key"


class Refused(Exception):
    """The file or the key is refused. `outcome` is the kind of refusal, and `reason` explains it."""

    def __init__(self, outcome, reason):
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


def require(condition, reason, outcome=TAMPERED):
    if not condition:
        raise Refused(outcome, reason)


# Primitives


def blake2b(bits, message, key=b""):
    return hashlib.blake2b(message, digest_size=bits // 8, key=key).digest()


def subkey(master, number):
    """`crypto_kdf_derive_from_key`, context `coffer01`, 32 bytes."""
    return hashlib.blake2b(
        b"", digest_size=32, key=master, salt=struct.pack("<QQ", number, 0), person=b"coffer01" + bytes(8)
    ).digest()


def seal(key, nonce, associated, plaintext):
    return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def open_seal(key, associated, sealed, what):
    require(len(sealed) >= SEAL_OVERHEAD, f"{what} is too short for a seal")
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[24:], associated, sealed[:24], key)
    except exceptions.CryptoError:
        raise Refused(TAMPERED, f"{what} does not open") from None


def tag(sealed):
    """The tag of a seal."""
    return sealed[-16:]


def pad(plaintext):
    return plaintext + b"\x80" + bytes(-(len(plaintext) + 1) % PADDING)


def unpad(padded, what):
    require(padded and len(padded) % PADDING == 0, f"{what} is not a multiple of {PADDING} bytes")
    body = padded.rstrip(b"\0")
    zeros = len(padded) - len(body)
    require(zeros < PADDING and body.endswith(b"\x80"), f"{what} is not padded as it must be")
    return body[:-1]


def argon2id(passphrase, salt, passes, memory_kib):
    return bindings.crypto_pwhash_alg(
        32, passphrase, salt, passes, memory_kib * 1024, bindings.crypto_pwhash_ALG_ARGON2ID13
    )


def equal(left, right):
    """Whether both are equal, compared in constant time."""
    return len(left) == len(right) and bindings.sodium_memcmp(left, right)


# Key text


def key_text(key):
    return KEY_TEXT_PREFIX + base64.urlsafe_b64encode(key + blake2b(256, KEY_TEXT_PREFIX + key)[:4])


def parse_key_text(text):
    """Returns the 32 bytes of the key in `text`. One LF may follow the key."""
    text = text.removesuffix(b"\n")
    require(text.startswith(KEY_TEXT_PREFIX), "the key does not begin with coffer-key-v1:", INVALID_KEY)
    body = text[len(KEY_TEXT_PREFIX) :]
    require(len(body) == 48, "the key is not 48 characters long", INVALID_KEY)
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    require(all(c in alphabet for c in body), "a character of the key is not base64url", INVALID_KEY)
    decoded = base64.urlsafe_b64decode(body)
    key, checksum = decoded[:32], decoded[32:]
    require(blake2b(256, KEY_TEXT_PREFIX + key)[:4] == checksum, "the key is mistyped", INVALID_KEY)
    return key


# Bytes to values


class Cursor:
    """Reads fields in sequence. Refuses missing and left-over bytes."""

    def __init__(self, data, what):
        self.data, self.position, self.what = data, 0, what

    def take(self, count):
        require(count <= len(self.data) - self.position, f"{self.what} is cut short")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def u8(self):
        return self.number("B")

    def u16(self):
        return self.number("H")

    def u32(self):
        return self.number("I")

    def u64(self):
        value = self.number("Q")
        require(value < U64_LIMIT, f"a number of {self.what} is absurd")
        return value

    def i64(self):
        return self.number("q")

    def reserved(self, count):
        require(not any(self.take(count)), f"a reserved byte of {self.what} is not zero")

    def text(self, minimum, maximum):
        return self.utf8(self.u16(), minimum, maximum)

    def utf8(self, length, minimum, maximum):
        require(minimum <= length <= maximum, f"a text of {self.what} has {length} bytes")
        try:
            text = self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(TAMPERED, f"a text of {self.what} is not UTF-8") from None
        require("\0" not in text, f"a text of {self.what} has a NUL in it")
        return text

    def finish(self):
        require(self.position == len(self.data), f"something follows {self.what}")


def encode_text(text):
    encoded = text.encode("utf-8")
    return struct.pack("<H", len(encoded)) + encoded


# Header


@dataclass(frozen=True)
class KeySlot:
    """A key slot of the header. The fields after `known` are only set if the slot is known."""

    raw: bytes
    type: int
    version: int
    known: bool
    header: bytes = b""
    id: bytes = b""
    created: int = 0
    label: str = ""
    passes: int = 0
    memory_kib: int = 0
    salt: bytes = b""
    commitment: bytes = b""
    wrapped: bytes = b""  # nonce ‖ wrapped master key


@dataclass(frozen=True)
class Header:
    raw: bytes  # bytes 0…H − 1
    length: int  # L
    minor: int
    read_only_compatible: int
    compatible: int
    vault_id: bytes
    file_id: bytes
    slots: tuple
    commitment: bytes
    mac: bytes


PASSPHRASE_SLOT, KEY_SLOT = 1, 2


def parse_key_slot(cursor):
    start = cursor.position
    kind, version, length = cursor.u8(), cursor.u8(), cursor.u16()
    require(length >= 4, "a key slot is shorter than its own beginning")
    cursor.position = start
    raw = cursor.take(length)
    if kind not in (PASSPHRASE_SLOT, KEY_SLOT) or version != 1:
        return KeySlot(raw, kind, version, known=False)
    fields = Cursor(raw, "a key slot")
    fields.take(4)
    slot_id, created = fields.take(16), fields.i64()
    label = fields.utf8(fields.u8(), 0, 64)
    passes, memory_kib = (fields.u32(), fields.u32()) if kind == PASSPHRASE_SLOT else (0, 0)
    salt = fields.take(16)
    header = raw[: fields.position]
    commitment, wrapped = fields.take(32), fields.take(24 + 48)
    fields.finish()
    return KeySlot(
        raw, kind, version, True, header, slot_id, created, label, passes, memory_kib, salt, commitment, wrapped
    )


def parse_header(file):
    """Parses the header of `file`, without authenticating it."""
    require(file[:8] == MAGIC, "the magic is not there", NOT_A_VAULT)
    cursor = Cursor(file[:MAXIMUM_HEADER], "the header")
    cursor.take(8)
    major, minor, incompatible = cursor.u16(), cursor.u16(), cursor.u32()
    require(major == MAJOR, f"the major version is {major}", UNSUPPORTED_VERSION)
    require(incompatible == 0, f"the incompatible bits are {incompatible:#x}", UNSUPPORTED_VERSION)
    read_only_compatible, compatible, length = cursor.u32(), cursor.u32(), cursor.u32()
    vault_id, file_id = cursor.take(16), cursor.take(16)
    count = cursor.u8()
    cursor.reserved(3)
    require(length <= MAXIMUM_HEADER, f"the header is {length} bytes long")
    require(1 <= count <= MAXIMUM_KEY_SLOTS, f"there are {count} key slots")
    slots = tuple(parse_key_slot(cursor) for _ in range(count))
    ids = [slot.id for slot in slots if slot.known]
    require(len(set(ids)) == len(ids), "two key slots have the same id")
    require(cursor.position == length - 64, "the key slots do not end where the header says")
    commitment, mac = cursor.take(32), cursor.take(32)
    padded_length = -(-length // PAGE) * PAGE
    cursor.reserved(padded_length - length)
    return Header(
        file[:padded_length],
        length,
        minor,
        read_only_compatible,
        compatible,
        vault_id,
        file_id,
        slots,
        commitment,
        mac,
    )


def slot_keys(secret, vault_id, slot_header):
    """Returns the key-encryption key and the commitment of a key slot."""
    both = blake2b(512, b"coffer-key-slot" + vault_id + slot_header, secret)
    return both[:32], both[32:]


def master_commitment(master, vault_id):
    return blake2b(256, b"coffer-master-key" + vault_id, master)


def header_mac(master, authenticated):
    return blake2b(256, authenticated, subkey(master, HEADER))


# Commit slots

STATE = struct.Struct("<QQ16sQQII16sQQ3968s")


@dataclass(frozen=True)
class State:
    sequence: int
    end: int
    tail_tag: bytes
    base_end: int
    root_offset: int
    root_length: int
    root_tag: bytes
    secrets: int
    dead_bytes: int

    def encode(self):
        return STATE.pack(
            self.sequence,
            self.end,
            self.tail_tag,
            self.base_end,
            self.root_offset,
            self.root_length,
            0,
            self.root_tag,
            self.secrets,
            self.dead_bytes,
            bytes(3968),
        )

    @classmethod
    def parse(cls, data, header_size, file_size):
        sequence, end, tail, base_end, offset, length, zero, root, secrets, dead, zeros = STATE.unpack(data)
        require(zero == 0 and not any(zeros), "a reserved byte of a commit slot is not zero")
        numbers = (sequence, end, base_end, offset, secrets, dead)
        require(max(numbers) < U64_LIMIT, "a number of a commit slot is absurd")
        require(header_size + 2 * PAGE <= offset, "the root lies before the base")
        require(offset + length == base_end, "the root does not end where the base does")
        require(base_end <= end <= file_size, "the end is before the base's or after the file's")
        require(length >= SEAL_OVERHEAD + 24, "the root is too short")
        require(end != base_end or tail == root, "there is no frame, and the tail tag is not the root's")
        return cls(sequence, end, tail, base_end, offset, length, root, secrets, dead)


def commit_associated(index, header):
    return b"coffer-commit" + bytes([index]) + blake2b(256, header)


# Frames and metadata

PUT, REMOVE = 1, 2
FRAME = struct.Struct("<IB3sQII")
HAS_LABEL, HAS_EXPIRY = 1, 2


@dataclass(frozen=True)
class Item:
    """The metadata of a put."""

    service: str
    account: str
    created: int
    modified: int
    label: str | None
    expires: int | None
    attributes: tuple  # of (name, value), ascending by the name's bytes
    lookup_id: bytes
    sequence: int
    value_tag: bytes

    def encode(self):
        flags = (HAS_LABEL if self.label is not None else 0) | (HAS_EXPIRY if self.expires is not None else 0)
        return b"".join(
            [
                self.lookup_id,
                struct.pack("<Q", self.sequence),
                self.value_tag,
                struct.pack("<qqB", self.created, self.modified, flags),
                encode_text(self.service),
                encode_text(self.account),
                encode_text(self.label) if self.label is not None else b"",
                struct.pack("<q", self.expires) if self.expires is not None else b"",
                bytes([len(self.attributes)]),
                *[encode_text(text) for pair in self.attributes for text in pair],
            ]
        )

    @classmethod
    def parse(cls, cursor, lookup_key):
        identifier, sequence, value_tag = cursor.take(16), cursor.u64(), cursor.take(16)
        created, modified, flags = cursor.i64(), cursor.i64(), cursor.u8()
        require(flags & ~(HAS_LABEL | HAS_EXPIRY) == 0, "a reserved flag is set")
        service, account = cursor.text(1, 1024), cursor.text(1, 1024)
        require(identifier == lookup_id(lookup_key, service, account), "a lookup id is not that of its names")
        label = cursor.text(0, 1024) if flags & HAS_LABEL else None
        expires = cursor.i64() if flags & HAS_EXPIRY else None
        count = cursor.u8()
        require(count <= 32, f"there are {count} attributes")
        attributes = tuple((cursor.text(1, 128), cursor.text(0, 1024)) for _ in range(count))
        names = [name.encode("utf-8") for name, _ in attributes]
        require(all(a < b for a, b in zip(names, names[1:])), "the attributes are not in ascending order")
        return cls(service, account, created, modified, label, expires, attributes, identifier, sequence, value_tag)


def lookup_id(lookup_key, service, account):
    service, account = service.encode("utf-8"), account.encode("utf-8")
    message = struct.pack("<I", len(service)) + service + struct.pack("<I", len(account)) + account
    return blake2b(128, message, lookup_key)


def encode_remove(identifier, service, account):
    return identifier + encode_text(service) + encode_text(account)


def parse_remove(data, lookup_key):
    cursor = Cursor(data, "the metadata of a remove")
    identifier, service, account = cursor.take(16), cursor.text(1, 1024), cursor.text(1, 1024)
    cursor.finish()
    require(identifier == lookup_id(lookup_key, service, account), "a lookup id is not that of its names")
    return identifier


def metadata_associated(file_id, offset, frame_header, previous_tag):
    return file_id + struct.pack("<Q", offset) + frame_header + previous_tag


def value_associated(vault_id, identifier, sequence):
    return vault_id + identifier + struct.pack("<Q", sequence)


# Base

ROOT = struct.Struct("<QQII")
BLOCK_ENTRY = struct.Struct("<16sQII16s")
VALUE_PLACE = struct.Struct("<QI")


def block_associated(file_id, offset, index):
    return b"coffer-block" + file_id + struct.pack("<QI", offset, index)


def root_associated(file_id, offset):
    return b"coffer-root" + file_id + struct.pack("<Q", offset)
