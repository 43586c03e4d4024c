"""Records: their names, times and tags, and the fields of records and of the root."""

import vault_format as f
import vault_records as p
from vector_bases import NFC, NFD, put, remove
from vector_cases_frames import CREATED, IDENTIFIER, KIND, SEQUENCE, SERVICE, TAG, TIME, VALUE_LENGTH
from vector_cases_root import FIELDS as ROOT_FIELDS
from vector_suite import TAMPERED, constant, flip, following, number, patch

PROBE = put("probe", "value")
BODY = KIND  # where the body begins in the metadata of a frame
FIELDS = SERVICE + 17 + 7  # after the names of the probe


def add(suite):
    records(suite)
    of_another_name(suite)
    known_fields(suite)
    field_lists(suite)


def text(data):
    return len(data).to_bytes(2, "little") + data


def long(data):
    return len(data).to_bytes(4, "little") + data


def field(kind, data=b""):
    return kind.to_bytes(2, "little") + long(data)


def listed(*fields):
    """A list of fields, whatever is in it."""
    return long(b"".join(fields))


# Where a record can be, and how a fault in the metadata of a frame becomes one there


def in_frame(description):
    description.update(tail=[[PROBE]])


def in_base(description):
    description.update(base={"items": [PROBE["put"]], "sequence": 2})


def of_item(fault):
    """The fault in the body of an item."""
    return lambda value: fault(bytes(BODY) + value[:-8])[BODY:] + value[-8:]


def of_entry(fault):
    """The fault in the lookup id and the sequence of an item, which its block's directory has."""
    return lambda value: fault(value[:BODY] + bytes(200))[:BODY] + value[BODY:]


def named(suite, service=b"s", account=b"a"):
    """Another name with its lookup id, under which the value is sealed."""
    names = len(service).to_bytes(4, "little") + service + len(account).to_bytes(4, "little") + account
    identifier = f.blake2b(128, names, suite.made["created"].lookup_key)
    head = lambda value: identifier + value[SEQUENCE:SERVICE]
    metadata = lambda value: head(value) + text(service) + text(account) + value[FIELDS:]
    return {"metadata": metadata, "value associated data": patch(16, identifier)}


def records(suite):
    faults = {
        "service-empty": ("a service of no bytes", named(suite, service=b"")),
        "service-1025": ("a service of 1025 bytes", named(suite, service=b"s" * 1025)),
        "service-nul": ("a NUL in the service", named(suite, service=b"a\0b")),
        "service-not-utf8": ("a service that is not UTF-8", named(suite, service=b"a\xff")),
        "service-overlong": ("an overlong encoding in the service", named(suite, service=b"\xc1\x81")),
        "service-overlong-nul": ("an overlong NUL in the service", named(suite, service=b"\xc0\x80")),
        "service-surrogate": ("a surrogate in the service", named(suite, service=b"\xed\xa0\x80")),
        "service-beyond-unicode": ("a code point above 10FFFF", named(suite, service=b"\xf4\x90\x80\x80")),
        "service-cut-utf8": ("a character cut short in the service", named(suite, service=b"caf\xc3")),
        "account-empty": ("an account of no bytes", named(suite, account=b"")),
        "account-1025": ("an account of 1025 bytes", named(suite, account=b"a" * 1025)),
        "account-nul": ("a NUL in the account", named(suite, account=b"\0")),
        "account-not-utf8": ("an account that is not UTF-8", named(suite, account=b"\x80")),
        "kind-0": ("kind 0", number(KIND, "B", 0)),
        "kind-2": ("a put whose kind is remove", number(KIND, "B", 2)),
        "kind-3": ("kind 3", number(KIND, "B", 3)),
        "kind-129": ("kind 129", number(KIND, "B", 129)),
        "kind-255": ("kind 255", number(KIND, "B", 255)),
        "lookup-id": ("a lookup id of other names", flip(IDENTIFIER)),
        "lookup-id-last-byte": ("a lookup id with a wrong last byte", flip(IDENTIFIER + 15)),
        "account-renamed": ("another account with the same lookup id", flip(FIELDS - 1)),
        "sequence": ("a sequence under which the value was not sealed", flip(SEQUENCE)),
        "value-tag": ("a wrong tag of the value", flip(TAG)),
        "value-tag-last-byte": ("a tag of the value with a wrong last byte", flip(TAG + 15)),
        "empty": ("no metadata at all", constant(b"")),
        "15-bytes": ("metadata of 15 bytes, which end in the lookup id", lambda value: value[:15]),
        "23-bytes": ("metadata of 23 bytes, which end in the sequence", lambda value: value[:23]),
        "24-bytes": ("metadata of 24 bytes, without a body", lambda value: value[:24]),
        "cut-short": ("the last byte is missing", lambda value: value[:-1]),
        "cut-in-time": ("a record cut in its time", lambda value: value[: TIME + 7]),
        "cut-before-created": ("a record cut before its time of creation", lambda value: value[:CREATED]),
        "cut-before-value-length": ("a record cut before its value's length", lambda value: value[:VALUE_LENGTH]),
        "cut-before-tag": ("a record cut before its tag", lambda value: value[:TAG]),
        "cut-before-service": ("a record cut before its service", lambda value: value[:SERVICE]),
        "without-fields": ("the list of fields is missing", lambda value: value[:FIELDS]),
        "something-follows": ("a byte follows", following(b"\0")),
        "something-nonzero-follows": ("a byte follows that is not zero", following(b"x")),
        "text-beyond-the-end": ("a text that is longer than the rest of the metadata", number(SERVICE, "H", 1024)),
    }
    for name, (comment, fault) in faults.items():
        faulty = fault if isinstance(fault, dict) else {"metadata": fault}
        parts = {f"frame 0 {part}": one for part, one in faulty.items()}
        suite.resealed(f"record-{name}", comment, "created", TAMPERED, parts, change=in_frame)
        if "bytes" in name or name == "empty":
            continue
        parts = {"block 0 item 0": of_item(faulty["metadata"])}
        if "lookup-id" in name or name == "sequence" or len(faulty) > 1:
            parts["block 0 entry 0"] = of_entry(faulty["metadata"])
        if len(faulty) > 1:
            parts["base item 0 value associated data"] = faulty["value associated data"]
        suite.resealed(f"record-{name}-in-base", comment + ", in the base", "created", TAMPERED, parts, change=in_base)
    everywhere = "a lookup id of other names, under which the value is sealed"
    for where, part, change in (("", "frame 0", in_frame), ("-in-base", "base item 0", in_base)):
        suite.resealed(
            "record-lookup-id-everywhere" + where,
            everywhere,
            "created",
            TAMPERED,
            {part + " lookup id": flip(0)},
            change=change,
        )


def of_another_name(suite):
    """A version, older or newest, that has the lookup id of another name."""
    for index, which in ((0, "older"), (1, "newest")):
        for part, where in (("frame", "tail"), ("base item", "base")):
            two = [PROBE, put("other", "value")][:: 1 if index else -1]
            own = p.lookup_id(suite.made["created"].lookup_key, PROBE["put"]["service"], PROBE["put"]["account"])
            change = {
                "tail": lambda d, two=two: d.update(tail=[two]),
                "base": lambda d, two=two: d.update(base={"items": [one["put"] for one in two], "sequence": 3}),
            }[where]
            comment = f"the {which} version of a secret is of another name: in the {where}"
            faults = {f"{part} {index} lookup id": constant(own)}
            suite.resealed(f"version-of-another-name-{which}-{where}", comment, "created", TAMPERED, faults, change=change)


def known_fields(suite):
    """The fields of a put whose form is known."""
    expiry, pair = bytes(8), text(b"n") + text(b"v")
    label = lambda data: [field(p.LABEL, data)]
    attributes = lambda *texts: [field(p.ATTRIBUTES, b"".join(text(one) for one in texts))]
    faults = {
        "label-1025": ("a label of 1025 bytes", label(b"l" * 1025)),
        "label-nul": ("a NUL in the label", label(b"l\0")),
        "label-not-utf8": ("a label that is not UTF-8", label(b"\xfe")),
        "label-surrogate": ("a surrogate in the label", label(b"\xed\xbf\xbf")),
        "label-text": ("a label with a length of its own: a NUL in it", label(text(b"label"))),
        "expiry-empty": ("an expiry of no bytes", [field(p.EXPIRY)]),
        "expiry-7-bytes": ("an expiry of 7 bytes", [field(p.EXPIRY, bytes(7))]),
        "expiry-9-bytes": ("an expiry of 9 bytes", [field(p.EXPIRY, bytes(9))]),
        "attributes-none": ("a field of no attributes", attributes()),
        "attributes-33": ("33 attributes", attributes(*[t for n in range(33) for t in (b"%02d" % n, b"")])),
        "attributes-odd": ("an attribute without a value", attributes(b"n", b"v", b"o")),
        "attributes-byte-more": ("a byte after the attributes", [field(p.ATTRIBUTES, pair + b"\0")]),
        "attributes-cut": ("the last value is cut short", [field(p.ATTRIBUTES, pair[:-1])]),
        "attributes-unsorted": ("attributes out of order", attributes(b"b", b"1", b"a", b"2")),
        "attributes-utf16-order": (
            "attributes in the order of UTF-16",
            attributes("\U00010000".encode(), b"1", "\uff5e".encode(), b"2"),
        ),
        "attributes-prefix-order": ("a name before its own prefix", attributes(b"ab", b"1", b"a", b"2")),
        "attributes-duplicate": ("one attribute twice", attributes(b"n", b"v", b"n", b"v")),
        "attributes-duplicate-name": ("one name with two values", attributes(b"n", b"v", b"n", b"w")),
        "attribute-name-empty": ("an attribute without a name", attributes(b"", b"v")),
        "attribute-name-129": ("an attribute's name of 129 bytes", attributes(b"n" * 129, b"v")),
        "attribute-name-nul": ("a NUL in an attribute's name", attributes(b"n\0", b"v")),
        "attribute-name-not-utf8": ("an attribute's name that is not UTF-8", attributes(b"\xff", b"v")),
        "attribute-value-1025": ("an attribute's value of 1025 bytes", attributes(b"n", b"v" * 1025)),
        "attribute-value-nul": ("a NUL in an attribute's value", attributes(b"n", b"\0")),
        "attribute-value-not-utf8": ("an attribute's value that is not UTF-8", attributes(b"n", b"\xff")),
        "expiry-before-label": ("the expiry before the label", [field(p.EXPIRY, expiry), field(p.LABEL)]),
        "attributes-before-expiry": (
            "attributes before the expiry",
            [*attributes(b"n", b"v"), field(p.EXPIRY, expiry)],
        ),
        "conflict-empty": ("a conflict of no bytes", [field(p.CONFLICT)]),
        "conflict-7-bytes": ("a conflict of 7 bytes", [field(p.CONFLICT, bytes(7))]),
        "conflict-9-bytes": ("a conflict of 9 bytes", [field(p.CONFLICT, bytes(9))]),
        "conflict-24-bytes": ("a conflict of 24 bytes", [field(p.CONFLICT, bytes(24))]),
        "conflict-zero": ("a conflict with a sequence of 0", [field(p.CONFLICT, bytes(8))]),
        "conflict-2-62": ("a conflict with a sequence of 2^62", [field(p.CONFLICT, bytes(7) + b"\x40")]),
        "conflict-2-63": ("a conflict with a sequence of 2^63", [field(p.CONFLICT, bytes(7) + b"\x80")]),
        "conflict-most": ("a conflict with the highest sequence", [field(p.CONFLICT, b"\xff" * 8)]),
        "since-7-bytes": ("a time of 7 bytes since when the value is known", [field(p.SINCE, bytes(7))]),
        "since-9-bytes": ("the same, of 9 bytes", [field(p.SINCE, bytes(9))]),
        "twin-7-bytes": ("a twin of 7 bytes", [field(p.TWIN, bytes(7))]),
        "twin-9-bytes": ("a twin of 9 bytes", [field(p.TWIN, b"\1" + bytes(8))]),
        "twin-zero": ("a twin with a sequence of 0", [field(p.TWIN, bytes(8))]),
        "kept-nothing-1-byte": ("the mark of what has kept nothing, of a byte", [field(p.KEPT_NOTHING, b"\1")]),
        "keeps-nothing-1-byte": ("the mark of a change that keeps nothing, of a byte", [field(p.KEEPS_NOTHING, b"\1")]),
        "keeps-nothing-before-conflict": (
            "the mark before the conflict",
            [field(p.KEEPS_NOTHING), field(p.CONFLICT, bytes(8))],
        ),
        "keeps-nothing-twice": ("two marks", [field(p.KEEPS_NOTHING), field(p.KEEPS_NOTHING)]),
        "origin-empty": ("an origin of no bytes", [field(p.ORIGIN)]),
        "origin-23-bytes": ("an origin of 23 bytes", [field(p.ORIGIN, bytes(23))]),
        "origin-25-bytes": ("an origin of 25 bytes", [field(p.ORIGIN, bytes(25))]),
        "origin-zero": ("an origin with a sequence of 0", [field(p.ORIGIN, bytes(24))]),
        "origin-2-62": ("an origin with a sequence of 2^62", [field(p.ORIGIN, bytes(7) + b"\x40" + bytes(16))]),
        "origin-before-mark": ("an origin before the mark", [field(p.ORIGIN, bytes(24)), field(p.KEEPS_NOTHING)]),
        "label-twice": ("two labels", [field(p.LABEL, b"a"), field(p.LABEL, b"a")]),
    }
    for name, (comment, fields) in faults.items():
        for where, holder in (("", "put"), ("-in-base", "put-in-base")):
            held(suite, f"field-{name}{where}", comment, TAMPERED, holder, listed(*fields))
    accented = put("probe", "value", attributes={NFD: "decomposed", NFC: "composed"})
    suite.resealed(
        "ok-attributes-nfc-nfd",
        "two attributes whose names are equal only after normalisation",
        "created",
        f.OK,
        change=lambda d: d.update(tail=[[accented]]),
        reading="Names of attributes are compared as bytes, like the names of secrets.",
    )


def held(suite, name, comment, outcome, holder, fields):
    """A vector with this list of fields, in whatever holds it."""
    removal = remove("probe")
    part, change, fault = {
        "put": ("frame 0 metadata", in_frame, lambda value: value[:FIELDS] + fields),
        "put-in-base": ("block 0 item 0", in_base, of_item(lambda value: value[:FIELDS] + fields)),
        "remove": (
            "frame 1 metadata",
            lambda d: d.update(tail=[[PROBE, removal]]),
            lambda value: value[:-4] + fields,
        ),
        "remove-in-base": (
            "block 0 item 1",
            lambda d: d.update(base={"items": [PROBE["put"], removal], "sequence": 3}),
            lambda value: value[:-4] + fields,
        ),
        "root": ("root", None, lambda value: value[:ROOT_FIELDS] + fields + value[ROOT_FIELDS + 4 :]),
    }[holder]
    where = (
        holder.replace("-", " ").replace("put in base", "put in the base").replace("move in base", "move in the base")
    )
    suite.resealed(name, f"{comment}: {where}", "created", outcome, {part: fault}, change=change)


def field_lists(suite):
    """The list itself, in each of its places."""
    one, two = field(0x100, b"x"), field(0x200)
    tampered = {
        "type-0": ("type 0", listed(field(0, b"x"))),
        "type-0-empty": ("type 0 without bytes, before another", listed(field(0), one)),
        "twice": ("one unknown type twice", listed(one, one)),
        "descending": ("types that descend", listed(two, one)),
        "critical-twice": ("a critical type twice", listed(field(0x8000), field(0x8000))),
        "ignorable-after-critical": ("types that descend from a critical one", listed(field(0x8001), one)),
        "length-beyond-list": ("a field longer than the list", long(one[:2] + b"\x02\0\0\0x")),
        "one-byte": ("a list of one byte", long(b"\x01")),
        "head-alone": ("a field without its length", long(b"\x00\x01")),
        "five-bytes": ("a field cut in its length", long(b"\x00\x01\x00\x00\x00")),
        "list-one-longer": ("a list a byte longer than its fields", long(one + b"\0")),
        "list-one-shorter": ("a list a byte shorter than its field", (len(one) - 1).to_bytes(4, "little") + one),
        "list-most": ("a list longer than what holds it", b"\xff\xff\xff\xff" + one),
        "unknown-65537": ("unknown fields of 65,537 bytes together", listed(one, field(0x7FFF, bytes(65_537 - 13)))),
        "list-cut": ("half the length of the list", b"\0\0"),
    }
    unsupported = {
        "critical-first": ("the first critical type", listed(field(0x8000))),
        "critical-last": ("the last critical type", listed(field(0xFFFF, b"x"))),
        "critical-after-unknown": ("a critical type after an ignorable one", listed(one, field(0x8001, b"critical"))),
        "critical-of-known-number": ("the critical type with the number of the first known one", listed(field(0x8001))),
    }
    ok = {
        "unknown": ("an unknown ignorable type", listed(one)),
        "unknown-last": ("the last ignorable type", listed(field(0x7FFF, b"\0\xff"))),
        "unknown-two": ("two unknown types", listed(one, two)),
        "unknown-65536": ("unknown fields of 65,536 bytes together", listed(one, field(0x7FFF, bytes(65_536 - 13)))),
        "unknown-dropped": ("an unknown type that a rewrite drops", listed(field(0x4001, b"x"))),
        "unknown-kept": ("an unknown type that is kept when the secret is stored again", listed(field(0x2001, b"x"))),
        "unknown-long": ("an unknown type of 300 bytes", listed(field(0x300, bytes(300)))),
    }
    for holder in ("put", "put-in-base", "remove", "remove-in-base", "root"):
        for name, (comment, fields) in tampered.items():
            held(suite, f"fields-{name}-{holder}", comment, TAMPERED, holder, fields)
        for name, (comment, fields) in unsupported.items():
            held(suite, f"fields-{name}-{holder}", comment, f.UNSUPPORTED_VERSION, holder, fields)
        for name, (comment, fields) in ok.items():
            held(suite, f"ok-fields-{name}-{holder}", comment, f.OK, holder, fields)
    numbers_of_puts = listed(field(1, b"l\0"), *(field(kind) for kind in range(2, 7)))
    marks = {
        "1-byte": ("the mark of a change that keeps nothing, of a byte", listed(field(p.KEEPS_NOTHING, b"\0"))),
        "24-bytes": ("the mark of a change that keeps nothing, of 24 bytes", listed(field(p.KEEPS_NOTHING, bytes(24)))),
        "twice": ("two marks of a change that keeps nothing", listed(field(p.KEEPS_NOTHING), field(p.KEEPS_NOTHING))),
    }
    origins = {
        "23-bytes": ("an origin of 23 bytes", listed(field(p.ORIGIN, bytes(23)))),
        "25-bytes": ("an origin of 25 bytes", listed(field(p.ORIGIN, bytes(25)))),
        "zero": ("an origin with a sequence of 0", listed(field(p.ORIGIN, bytes(24)))),
        "2-62": ("an origin with a sequence of 2^62", listed(field(p.ORIGIN, bytes(7) + b"\x40" + bytes(16)))),
    }
    origin = listed(field(p.ORIGIN, b"\x01" + bytes(7) + b"t" * 16))
    for holder in ("put", "put-in-base", "remove", "remove-in-base"):
        held(suite, f"ok-field-origin-{holder}", "a state that had the change first", f.OK, holder, origin)
    for holder in ("remove", "remove-in-base"):
        held(suite, f"ok-fields-numbers-of-puts-{holder}", "types 1 to 6, unknown there", f.OK, holder, numbers_of_puts)
        for name, (comment, fields) in marks.items():
            held(suite, f"field-keeps-nothing-{name}-{holder}", comment, TAMPERED, holder, fields)
        for name, (comment, fields) in origins.items():
            held(suite, f"field-origin-{name}-{holder}", comment, TAMPERED, holder, fields)
    for kind in (5, 6, 7):
        fields = listed(field(kind, b"?"))
        held(suite, f"ok-fields-type-{kind}-root", f"type {kind}, unknown there", f.OK, "root", fields)
    held(
        suite,
        "fields-critical-and-wrong-label",
        "a label that is not UTF-8, and an unknown critical type: the latter is found first",
        f.UNSUPPORTED_VERSION,
        "put",
        listed(field(1, b"\xff"), field(0x8000)),
    )
    held(
        suite,
        "fields-critical-and-wrong-limit",
        "a history limit out of bounds, and an unknown critical type: the latter is found first",
        f.UNSUPPORTED_VERSION,
        "root",
        listed(field(1, b"\xff\xff\0\0"), field(0x8000)),
    )
