"""The base vaults of the vectors: a description and a credential for each name."""

import hashlib
import struct

from nacl import bindings

import vault_format as f
import vector_hybrid_kem as hybrid_kem
from vault_writer import seeded_random

# The identities of X25519 slots.
IDENTITY = hashlib.blake2b(b"the identity of the vectors", digest_size=32).digest()
OTHER_IDENTITY = hashlib.blake2b(b"another identity of the vectors", digest_size=32).digest()
RECIPIENT, OTHER_RECIPIENT = (bindings.crypto_scalarmult_base(one) for one in (IDENTITY, OTHER_IDENTITY))
CI_KEY = hashlib.blake2b(b"the key of the vectors", digest_size=32).digest()
OTHER_KEY = hashlib.blake2b(b"a key that opens nothing", digest_size=32).digest()
PASSPHRASE = "correct horse battery staple"
NOW = 1_735_689_600_000  # 2025-01-01T00:00:00Z

DAY = 86_400_000
HISTORY = {"versions": 10, "days": 90}

NFC, NFD = "caf\u00e9", "cafe\u0301"


def noise(length, name):
    return hashlib.shake_256(name.encode("utf-8")).digest(length)


def key_slot(label="ci", key=CI_KEY):
    return {"type": "key", "key": key.hex(), "label": label, "created": NOW}


def passphrase_slot(passphrase=PASSPHRASE, label="laptop", passes=1, memory_kib=8):
    return {
        "type": "passphrase",
        "passphrase_text": passphrase,
        "label": label,
        "created": NOW,
        "passes": passes,
        "memory_kib": memory_kib,
    }


def unknown_slot(kind, version, body):
    return {"type": "raw", "bytes": (struct.pack("<BBH", kind, version, 4 + len(body)) + body).hex()}


def recipient_slot(recipient=RECIPIENT, label="recipient"):
    return {"type": "recipient", "recipient": recipient.hex(), "label": label, "created": NOW}


def hybrid_slot(name="hybrid", label=b"", share=1120, recipient=1216):
    """A hybrid slot, which nothing opens: all but its form is noise."""
    body = noise(16, name + " id") + struct.pack("<q", NOW) + bytes([len(label)]) + label
    body += noise(recipient + share + 32 + 24 + 48, name)
    return unknown_slot(f.HYBRID_SLOT, 1, body)


def hybrid():
    """A key and a hybrid recipient, with a share that was made once."""
    slot = recipient_slot(hybrid_kem.RECIPIENT, "hybrid") | {"share": hybrid_kem.SHARE.hex(), "secret": hybrid_kem.SECRET.hex()}
    return vault("hybrid", [item("one", "1")], [[put("two", "2")]], slots=[key_slot(), slot])


def item(account, value, service="com.example.app", **more):
    value = value if isinstance(value, bytes) else value.encode("utf-8")
    return {"service": service, "account": account, "created": NOW, "modified": NOW, "value": value.hex()} | more


def put(account, value, **more):
    return {"put": item(account, value, **more)}


def remove(account, service="com.example.app", time=NOW, **more):
    return {"remove": {"service": service, "account": account, "time": time, **more}}


def vault(name, items=(), tail=(), slots=None, base=None, **more):
    return {
        "seed": f"coffer vectors 1: {name}",
        "slots": slots or [key_slot()],
        "base": {"items": list(items), **(base or {})},
        "tail": list(tail),
        **more,
    }


def small(**more):
    """Two key slots, two blocks of two items, four frames in three commits, and a history."""
    items = [
        item("database", "postgres://localhost"),
        item("github", "ghp_0123456789", label="GitHub", attributes={"scope": "repo", "user": "octocat"}),
        item("old", "to be removed"),
        item("smtp", "to be replaced"),
    ]
    tail = [
        [put("deploy", "first frame!", label="Deploy key", attributes={"a": "1", "b": "2"})],
        [put("smtp", "new password"), remove("old")],
        [put("session", "last frame !", expires=NOW + 86_400_000)],
    ]
    base = {"items_per_block": 2, "sequence": 10}
    return vault("small", items, tail, [key_slot(), passphrase_slot()], base, history=HISTORY, **more)


def values():
    lengths = (0, 1, 30, 31, 32, 33, 63, 64, 65, 16_384)
    items = [item(f"{length} bytes", noise(length, f"value {length}")) for length in lengths]
    items += [
        item("one 80", b"\x80"),
        item("ends as padding does", b"secret\x80" + bytes(5)),
        item("only NUL", bytes(31)),
        item("one LF", b"\n"),
        item("ends in LF", b"line\n"),
        item("ends in CRLF", b"line\r\n"),
        item("every byte", bytes(range(256))),
        item("not UTF-8", b"\xff\xfe\x00\xc0"),
        item("UTF-8", "pässwörd\u2028"),
    ]
    half = len(items) // 2
    return vault("values", items[:half], [[{"put": one} for one in items[half:]]])


IDENTIFIERS = [
    ("com.example.app", NFC),
    ("com.example.app", NFD),
    (NFC, "account"),
    (NFD, "account"),
    ("s", "a"),
    ("s" * 1024, "a" * 1024),
    ("ab", "c"),
    ("a", "bc"),
    ("abc", " "),
    (" ", "abc"),
    ("Case", "case"),
    ("case", "Case"),
    ("slashes", "/a//b/"),
    ("dots", "../.."),
    ("\ufeffBOM", "\ufeff"),
    ("emoji", "👩‍👩‍👧‍👦"),
    ("emoji", "👩👩👧👦"),
    ("日本語", "パスワード"),
    ("control", "\x01\x1b[31m\x7f"),
    ("LF", "a\nb"),
    ("noncharacter", "\uffff"),
    ("supplementary", "\U00010000"),
    ("last", "\U0010ffff"),
    ("é" * 512, "𝄞" * 256),
    ("ligature", "ﬁ"),
    ("ligature", "fi"),
    ("Å", "\u212b"),
    ("Å", "\u00c5"),
]


def identifiers():
    items = [item(account, f"value {n}", service=service) for n, (service, account) in enumerate(IDENTIFIERS)]
    tail = [[{"put": one} for one in items[1::4]], [{"put": one} for one in items[3::4]]]
    return vault("identifiers", items[::2], tail)


def metadata():
    """Labels, times and attributes. The largest record is in the base: the tail is too short for it."""
    many = {f"name {n:02}": f"value {n}" for n in range(32)}
    largest = {f"{n:02}".ljust(128, "n"): "v" * 1024 for n in range(32)}
    items = [
        item("no label", "1"),
        item("empty label", "2", label=""),
        item("longest label", "3", label="é" * 512),
        item("expired", "4", expires=0),
        item("expired long ago", "5", expires=-1),
        item("expires", "6", expires=NOW),
        item("many attributes", "7", attributes=many),
        item("empty attribute", "9", attributes={"n": ""}),
        item("largest", "8", label="l" * 1024, expires=NOW, attributes=largest),
        item("byte order", "10", attributes={"\uff5e": "first", "\U00010000": "second"}),
        item("modified before created", "11", modified=NOW - 1),
        item("one millisecond", "12", modified=1),
        item("label and expiry", "13", label="both", expires=NOW + 1),
    ]
    return vault("metadata", items[::2], [[{"put": one}] for one in items[1::2]])


def times():
    least, most = -(1 << 63), (1 << 63) - 1
    items = [
        item("least", "1", created=least, modified=least, expires=least),
        item("most", "2", created=most, modified=most, expires=most),
        item("before 1970", "3", created=-1, modified=-1),
        item("year 10000", "4", created=253_402_300_800_000, modified=253_402_300_800_000),
    ]
    slots = [key_slot() | {"created": least}, key_slot("most", OTHER_KEY) | {"created": most}]
    return vault("times", items[:2], [[{"put": one} for one in items[2:]]], slots)


def five_passphrases():
    """Six passphrase slots and a key slot between them. A reader tries four passphrase slots."""
    slots = [passphrase_slot(f"passphrase {n}", f"slot {n}") for n in range(1, 7)]
    slots[2]["passphrase_text"] = "a\0b"
    slots[3]["passphrase_text"] = NFC
    slots.insert(1, key_slot())
    return vault("passphrases", [item("one", "1")], slots=slots)


def most_slots():
    """As many slots as a header can have, of every known type and of unknown types. The last slot opens the vault."""
    slots = [key_slot(f"key {n}", noise(32, f"key {n}")) for n in range(229)]
    slots += [
        passphrase_slot(),
        recipient_slot(OTHER_RECIPIENT, "another"),
        hybrid_slot("first"),
        recipient_slot(),
        hybrid_slot("second", b"l" * 64),
        unknown_slot(1, 2, b""),
        unknown_slot(2, 0, noise(5, "short")),
        unknown_slot(3, 2, noise(50, "recipient")),
        unknown_slot(4, 0, b""),
        unknown_slot(255, 255, noise(5000, "long")),
        key_slot("l" * 64),
    ]
    return vault("most-slots", [item("one", "1")], slots=slots)


def recipients():
    """A key slot, the slots of two recipients and a hybrid slot."""
    slots = [key_slot(), recipient_slot(), recipient_slot(OTHER_RECIPIENT, "another"), hybrid_slot()]
    return vault("recipients", [item("one", "1")], [[put("two", "2")]], slots)


def filled_slots(length):
    """A key slot, and unknown slots of zeros that make a header of `length` bytes."""
    slots = [key_slot()]
    room = length - 128 - (4 + 16 + 8 + 1 + len("ci") + 16 + 32 + 24 + 48)
    while room:
        size = min(room, 65_535)
        slots.append(unknown_slot(9, 9, bytes(size - 4)))
        room -= size
    return slots


def many():
    """Several blocks of the size that the rule for writers requires."""
    items = [item(f"account {n:03}", f"value {n}", label="x" * 100 if n % 3 == 0 else None) for n in range(320)]
    for one in items:
        if one["label"] is None:
            del one["label"]
    tail = [[put("account 007", "replaced"), remove("account 100"), put("new", "added")]]
    return vault("many", items, tail)


def one_block():
    """A block that is longer than the rule for writers allows. A reader accepts it."""
    items = [item(f"account {n:02}", f"value {n}", label="x" * 1024) for n in range(20)]
    return vault("one-block", items, base={"items_per_block": 1000})


def largest_block():
    """A block of exactly 1 MiB. The tail removes all its items, so that the expectation is short."""
    items, room = [], 1 << 20
    while room:
        bare = item(f"{len(items):02}", "v", service="s")
        # An item with these names and no attribute: its place in the directory, the fixed part of a put, the names, the
        # list of fields and the head of the attributes, the place of the value.
        room -= 28 + 37 + 3 + 4 + 4 + 6 + 8
        attributes = {}
        while room and len(attributes) < 32:
            size = min(room, 1024 + 6)
            size -= 6 if 0 < room - size < 6 else 0  # leave room for one more attribute, or no room
            attributes[f"{len(attributes):02}"] = "v" * (size - 6)
            room -= size
        items.append(bare | {"attributes": attributes})
    tail = [[remove(one["account"], "s") for one in items]]
    return vault("largest-block", items, tail, base={"items_per_block": 1000})


def tail_only():
    """Frames after an empty base. A secret is put, replaced, removed and put again. Only commit slot 0 has the last."""
    tail = [
        [put("one", "first"), put("one", "second"), put("two", "2")],
        [remove("one"), put("three", "3"), put("one", "again"), remove("three"), put("three", "anew")],
    ]
    return vault("tail-only", [], tail, base={"sequence": 1}, uncopied=2)


def emptied():
    """An empty base, and a tail that removes the secret that it puts."""
    return vault("emptied", [], [[put("one", "1")], [remove("one")]], base={"sequence": 1})


def versions():
    """Earlier versions and removals, in blocks of three and in the tail. `rotated` has seven records in the base."""

    def stored(account, days_ago):
        time = NOW - days_ago * DAY
        return item(account, f"{account} of {days_ago} days ago", created=NOW - 99 * DAY, modified=time)

    def removed(account, days_ago):
        return remove(account, time=NOW - days_ago * DAY)

    items = [stored("rotated", days) for days in (60, 50, 40, 30, 20, 11, 10)]
    items += [stored("gone", 45), stored("gone", 44), removed("gone", 30)]
    items += [stored("back", 35), removed("back", 30), stored("back", 9)]
    items += [stored("erased", 20), removed("erased", 10)]
    items += [stored("plain", 8), stored("to remove", 8)]
    tail = [
        [{"put": stored("rotated", 1)}],
        [removed("to remove", 1), {"put": stored("gone", 1)}],
        [{"put": stored("new", 1)}, {"put": stored("new", 0)}, removed("new", 0)],
    ]
    return vault("versions", items, tail, base={"items_per_block": 3}, history={"versions": 4, "days": 30})


def known(name, number, **more):
    """A vault of a few changes, and the same under its next master key."""
    identity = {"master_key": KNOWN_MASTERS[number].hex(), "vault_id": noise(16, "known vault").hex()}
    return vault(name, [item("one", "10")], **identity, **more)


KNOWN_MASTERS = [noise(32, "the first master key"), noise(32, "the second master key")]
FIRST_KEY = f.subkey(KNOWN_MASTERS[0], f.KNOWN_VAULTS).hex()
KNOWN_TAIL = [[put("one", str(n))] for n in range(11, 15)]


EXAMPLE_KEY = bytes(range(32))
EXAMPLE_IDENTITY = bytes(range(128, 160))


def example():
    """The vault of the worked example: two slots, one item, one recent change, the default history, and one frame."""
    identity = {"master_key": range(32, 64), "vault_id": range(64, 80), "file_id": range(80, 96)}
    identity["lookup_key"] = range(96, 128)
    return vault(
        "example",
        [item("user", "alice", service="example")],
        [[put("token", "hunter2", service="example", label="A token")]],
        [key_slot("laptop", EXAMPLE_KEY), recipient_slot(bindings.crypto_scalarmult_base(EXAMPLE_IDENTITY), "phone")],
        {"sequence": 2, "recent": [[1, bytes(range(160, 176)).hex()]]},
        history=HISTORY,
        **{name: bytes(value).hex() for name, value in identity.items()},
    )


def largest_metadata():
    """A frame with the longest metadata: the longest names, known fields and unknown fields."""
    fields = {"label": "l" * 1024, "expires": 0, "conflict": 1, "keeps_nothing": True}
    fields["attributes"] = {f"{number:0128}": "v" * 1024 for number in range(32)}
    fields["fields"] = [[0x1000, "00" * (65_536 - 6)]]
    one = put("a" * 1024, "1", service="s" * 1024, **fields)
    return vault("largest-metadata", tail=[[one]], base={"sequence": 1})


def longest_tail():
    """24 frames that have exactly 1,048,576 bytes without their values.

    The field of a long frame is the key stream of its seal, so that the sealed field is zeros and the file compresses.
    """
    tail = []
    random = seeded_random(vault("longest-tail")["seed"])
    key = f.subkey(random(32, "master key"), f.FRAMES)
    # 24 bytes of lookup id and sequence, 37 of the put, 6 of the names, 4 of the list, 6 of the field, 1 of the padding.
    for number, padded in enumerate([65_408] * 16 + [96] * 7 + [320]):
        nonce = random(24, f"frame {number} metadata nonce")
        stream = f.seal(key, nonce, b"", bytes(padded))[24:-16]
        field = stream[77:-1] if padded > 320 else bytes(padded - 78)
        tail.append([put("a", str(number), service="s", fields=[[0x1000, field.hex()]])])
    return vault("longest-tail", tail=tail, base={"sequence": 1})


def pairs(*sequences):
    """Recent changes: a sequence each, or (sequence, name of its tag)."""
    named = [one if isinstance(one, tuple) else (one, f"tag of {one}") for one in sequences]
    found = sorted((sequence, noise(16, name)) for sequence, name in named)
    return [[sequence, tag.hex()] for sequence, tag in found]


def blocks():
    """Five blocks of two items, recent changes, two frames and a history."""
    items = [item(f"account {n}", f"value {n}") for n in range(10)]
    base = {"items_per_block": 2, "sequence": 20, "recent": pairs(15, 16, 18), "floor": 14}
    return vault("blocks", items, [[put("account 3", "new")], [remove("account 4")]], base=base, history=HISTORY)


def recent():
    """Recent changes with two sequences that a merge has twice, and a floor that no change has."""
    changes = pairs(5, 7, (7, "another 7"), 9, (18, "one"), (18, "two"), 19)
    base = {"sequence": 20, "recent": changes, "floor": 4}
    return vault("recent", [item("one", "1")], [[put("one", "2")]], base=base)


def most_recent():
    """The most recent changes there can be."""
    base = {"sequence": 5000, "recent": pairs(*range(1000, 1000 + 2048))}
    return vault("most-recent", base=base)


def former(name, removed=1, kind=f.X25519_SLOT, **more):
    """A former key slot."""
    recipient = noise(32, name).hex() if kind in f.RECIPIENTS else "00" * 32
    identity = {"slot_id": noise(16, name + " slot").hex(), "type": kind, "recipient": recipient}
    return identity | {"label": name, "created": NOW, "removed": removed, "removed_time": NOW + 1} | more


def former_slots():
    """Recipients and a passphrase that were removed with a new master key, and a passphrase that was changed since."""
    found = [
        former("first"),
        former("second", 2, f.HYBRID_SLOT, removed_time=-(1 << 63)),
        former("passphrase", 4, f.PASSPHRASE_SLOT, created=-(1 << 63)),
        former("é" * 32, 4, removed_time=(1 << 63) - 1),
        former("", 5, f.PASSPHRASE_SLOT, is_trace=1),
    ]
    base = {"sequence": 6}
    return vault("former-slots", [item("one", "1")], [[put("two", "2")]], base=base, history=HISTORY, former_slots=found)


CI = {"key_text": CI_KEY}
BASES = {
    "created": (vault("created", base={"sequence": 1}), CI),
    "small": (small(), CI),
    "uncopied": (small(uncopied=1), CI),
    "values": (values(), CI),
    "identifiers": (identifiers(), CI),
    "metadata": (metadata(), CI),
    "times": (times(), CI),
    "passphrases": (five_passphrases(), {"passphrase": "passphrase 1"}),
    "default-cost": (
        vault("default-cost", [item("one", "1")], slots=[passphrase_slot(passes=3, memory_kib=65_536)]),
        {"passphrase": PASSPHRASE},
    ),
    "most-slots": (most_slots(), CI),
    "recipients": (recipients(), {"identity": IDENTITY}),
    "largest-header": (vault("largest-header", slots=filled_slots(f.MAXIMUM_HEADER)), CI),
    "many": (many(), CI),
    "one-block": (one_block(), CI),
    "largest-block": (largest_block(), CI),
    "tail-only": (tail_only(), CI),
    "emptied": (emptied(), CI),
    "versions": (versions(), CI),
    "example": (example(), {"key_text": EXAMPLE_KEY}),
    "known": (known("known", 0, tail=KNOWN_TAIL, base={"sequence": 10}), CI),
    "rekeyed": (known("rekeyed", 1, base={"sequence": 15}, lineage=[FIRST_KEY]), CI),
    "largest-metadata": (largest_metadata(), CI),
    "longest-tail": (longest_tail(), CI),
    "blocks": (blocks(), CI),
    "recent": (recent(), CI),
    "most-recent": (most_recent(), CI),
    "former-slots": (former_slots(), CI),
    "hybrid": (hybrid(), {"hybrid_identity": hybrid_kem.IDENTITY}),
}
