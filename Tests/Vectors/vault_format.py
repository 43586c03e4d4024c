"""The vault file, format 1: the primitives, the header and the commit slots. Records are in vault_records.py.

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

MAXIMUM_ROOT = 16_777_216
MAXIMUM_TAIL = 33_554_432  # without values
MAXIMUM_BASE_RECORDS = 2001  # of one lookup id

# The numbers of the subkeys.
HEADER, COMMITS, METADATA, VALUES, BASE, LOOKUP_IDS, KNOWN_VAULTS, LINEAGE, FRAME_LENGTHS = range(1, 10)

# The outcomes of the specification.
OK = "ok"
RECOVERED = "recovered"
NOT_A_VAULT = "not-a-vault"
UNSUPPORTED_VERSION = "unsupported-version"
TAMPERED = "tampered"
WRONG_KEY = "wrong-key"
COST_LIMIT_EXCEEDED = "cost-limit-exceeded"
INVALID_KEY = "invalid-key"
READ_ONLY = "read-only"
LIMIT_REACHED = "limit-reached"
ROLLED_BACK = "rolled-back"
ANOTHER_VAULT = "another-vault"
ANOTHER_KEY = "another-key"
UNVERIFIABLE_RECORD = "unverifiable-record"


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
        require(value < U64_LIMIT, f"a number of {self.what} is 2^62 or more")
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


PASSPHRASE_SLOT, KEY_SLOT, RECIPIENT_SLOT = 1, 2, 3


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
    passes, memory_kib = 0, 0
    if kind == PASSPHRASE_SLOT:
        passes, memory_kib = fields.u32(), fields.u32()
        require(memory_kib >= 8 and passes >= 1, "a key slot asks for less than the least cost")
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
    context = b"coffer-recipient-slot" if slot_header[0] == RECIPIENT_SLOT else b"coffer-key-slot"
    both = blake2b(512, context + vault_id + slot_header, secret)
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

    @property
    def checkpoint(self):
        return f"{self.sequence}-{self.tail_tag.hex()}"

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
        require(max(numbers) < U64_LIMIT, "a number of a commit slot is 2^62 or more")
        require(header_size + 2 * PAGE <= offset, "the root lies before the base")
        require(offset + length == base_end, "the root does not end where the base does")
        require(base_end <= end <= file_size, "the end is before the base's or after the file's")
        require(SEAL_OVERHEAD + 26 <= length <= MAXIMUM_ROOT, "the root is too short or too long")
        require(end != base_end or tail == root, "there is no frame, and the tail tag is not the root's")
        require(secrets <= end, "there are more secrets than bytes")
        return cls(sequence, end, tail, base_end, offset, length, root, secrets, dead)


def commit_associated(index, header):
    return b"coffer-commit" + bytes([index]) + blake2b(256, header)
