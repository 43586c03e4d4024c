"""Several records of one name, the history limit and the lineage."""

import vault_format as f
import vault_records as p
from vector_bases import DAY, NOW, item, put, remove
from vector_cases_records import field, held, listed
from vector_suite import TAMPERED, flip, following, number


def add(suite):
    counted(suite)
    aged_versions(suite)
    records_of_one_name(suite)
    limits(suite)
    lineage(suite)


def with_history(versions, days):
    return lambda description: description.update(history={"versions": versions, "days": days})


def counted(suite):
    """How many versions count, in the base and in the tail."""
    for versions in (0, 1, 2, 3, 5, 6, 7, 8, 1000):
        suite.resealed(
            f"ok-history-{versions}-versions",
            f"a limit of {versions} versions",
            "versions",
            f.OK,
            change=with_history(versions, 0),
        )
    for days in (1, 9, 10, 11, 29, 31, 36_500):
        suite.resealed(
            f"ok-history-{days}-days",
            f"a limit of {days} days",
            "versions",
            f.OK,
            change=with_history(1000, days),
        )
    suite.resealed(
        "ok-history-missing",
        "no limit is given: there is no history",
        "versions",
        f.OK,
        change=lambda d: d.pop("history"),
    )
    for difference in (-1, 0, 1):
        suite.intact(
            f"ok-history-age-{difference + 1}",
            f"versions superseded 30 days ago, and {difference} ms more",
            "versions",
            now=NOW + difference,
        )
    for name, now in (("before-all", 0), ("least", -(1 << 63)), ("most", (1 << 63) - 1)):
        suite.intact(f"ok-history-now-{name}", f"the time of reading is {now}", "versions", now=now)


def aged_versions(suite):
    """Times that do not ascend, and the furthest there are."""
    least, most = -(1 << 63), (1 << 63) - 1

    def times(*times):
        tail = [[put("one", str(n), created=time, modified=time)] for n, time in enumerate(times)]
        return lambda d: d.update(tail=tail, history={"versions": 10, "days": 1})

    for name, comment, stored, now in (
        (
            "clock-back",
            "a version that is not too old before versions that are: these end the list",
            (100, 1, 2, 3),
            101,
        ),
        ("clock-ahead", "versions superseded after the time of reading", (5, 6, 7), 1),
    ):
        change = times(*[NOW + DAY * day for day in stored])
        suite.resealed(f"ok-history-{name}", comment, "created", f.OK, change=change, now=NOW + now * DAY)
    for name, stored, now in (
        ("least-and-most", (least, least, least), most),
        ("most-and-least", (most, most, most), least),
        ("least-and-least", (least, least), least),
        ("day-from-least", (least, least), least + DAY),
        ("day-and-more-from-least", (least, least), least + DAY + 1),
    ):
        comment = f"versions of the time {stored[0]}, read at {now}"
        suite.resealed(f"ok-history-{name}", comment, "created", f.OK, change=times(*stored), now=now)


def records_of_one_name(suite):
    """Order and form of the records of one name in the base; `rotated` has seven in three blocks."""

    def exchanged(first, second):
        def fault(items):
            items = list(items)
            items[first], items[second] = items[second], items[first]
            return items

        return fault

    made = suite.made["versions"]
    order = [place for place, item in enumerate(positions(made)) if item == "rotated"]
    block_of = lambda place: place // 3
    within = next(place for place in order[:-1] if block_of(place) == block_of(place + 1))
    across = next(place for place in order[:-1] if block_of(place) != block_of(place + 1))
    for name, place in (("within-block", within), ("across-blocks", across)):
        suite.resealed(
            f"versions-exchanged-{name}",
            f"two versions of one name in the other order, {name.replace('-', ' ')}",
            "versions",
            TAMPERED,
            {"base items": exchanged(place, place + 1)},
        )
    suite.resealed(
        "version-twice",
        "one version twice",
        "versions",
        TAMPERED,
        {"base items": lambda items: [*items[: within + 1], *items[within:]]},
    )
    suite.resealed(
        "versions-of-one-sequence",
        "two versions of one name and one sequence",
        "created",
        TAMPERED,
        change=lambda d: d.update(base={"items": [item("one", n, sequence=1) for n in "12"], "sequence": 2}),
    )
    for per_block in (1, 2, 7):
        suite.resealed(
            f"ok-versions-{per_block}-per-block",
            f"seven versions of one name, {per_block} in a block",
            "created",
            f.OK,
            change=lambda d, per_block=per_block: d.update(
                base={"items": [item("one", str(n)) for n in range(7)], "items_per_block": per_block},
                history={"versions": 10, "days": 0},
            ),
        )
    place = positions(made).index("erased") + 1
    removal, entry = (f"block {block_of(place)} {part} {place % 3}" for part in ("item", "entry"))
    faults = {
        "with-place": ("a remove with the place of a value", removal, following(p.PLACE.pack(12_288))),
        "without-fields": ("a remove without its list of fields", removal, lambda value: value[:-2]),
        "kind-1": ("a remove whose kind is put", removal, number(0, "B", 1)),
        "kind-0": ("a record of kind 0", removal, number(0, "B", 0)),
        "above-root": ("a remove of a sequence above the root's", entry, number(16, "Q", 1000)),
        "lookup-id": ("a remove with the lookup id of another name", entry, flip(0)),
    }
    for name, (comment, part, fault) in faults.items():
        suite.resealed(f"base-remove-{name}", comment + ", in the base", "versions", TAMPERED, {part: fault})
    middle = f"block {block_of(order[3])} value"
    values = [part for part in made.parts if part.startswith(middle)]
    suite.flipped("version-damaged", "the value of an earlier version is damaged", "versions", TAMPERED, values[0], 30)
    removals = {
        "alone": ("that follows nothing", [remove("one")], TAMPERED),
        "first": ("before the only put", [remove("one"), put("one", "1")["put"]], TAMPERED),
        "twice": ("after another remove", [put("one", "1")["put"], remove("one"), remove("one")], TAMPERED),
        "between": ("between two puts", [put("one", "1")["put"], remove("one"), put("one", "2")["put"]], f.OK),
        "of-another": ("after a put of another secret", [put("other", "1")["put"], remove("one")], TAMPERED),
        "after-another": (
            "after a put of its secret and one of another",
            [put("one", "1")["put"], put("other", "1")["put"], remove("one")],
            f.OK,
        ),
    }
    for name, (comment, items, outcome) in removals.items():
        for where, description in (
            ("base", {"base": {"items": items}}),
            ("tail", {"tail": [[one if "remove" in one else {"put": one} for one in items]]}),
        ):
            suite.resealed(
                f"{'ok-' if outcome == f.OK else ''}remove-{name}-in-{where}",
                f"a remove {comment}, in the {where}",
                "created",
                outcome,
                change=lambda d, description=description: d.update(description, history={"versions": 5, "days": 0}),
            )

    one, again, removal = put("one", "1")["put"], put("one", "2")["put"], remove("one")
    for name, comment, base, tail, outcome in (
        ("of-base", "a remove in the tail of a put in the base", [one], [removal], f.OK),
        ("of-base-twice", "two removes in the tail of a put in the base", [one], [removal, removal], TAMPERED),
        ("after-base-remove", "a remove in the tail after one in the base", [one, removal], [removal], TAMPERED),
        (
            "after-base-remove-and-put",
            "a remove in the base, then a put and a remove in the tail",
            [one, removal],
            [{"put": again}, removal],
            f.OK,
        ),
        ("not-of-base", "a remove in the tail of what the base does not have", [one], [remove("other")], TAMPERED),
        ("before-tail-put", "a remove in the base before a put in the tail", [removal], [{"put": one}], TAMPERED),
    ):
        suite.resealed(
            f"{'ok-' if outcome == f.OK else ''}remove-{name}",
            comment,
            "created",
            outcome,
            change=lambda d, base=base, tail=tail: d.update(
                base={"items": base}, tail=[tail], history={"versions": 5, "days": 0}
            ),
        )


def positions(made):
    """The account of each item of the base, in the order of the file."""
    key = made.lookup_key
    described = enumerate(made.description["base"]["items"])
    found = [(one.get("remove", one), number) for number, one in described]
    order = sorted(found, key=lambda pair: (p.lookup_id(key, pair[0]["service"], pair[0]["account"]), pair[1]))
    return [one["account"] for one, _ in order]


def limits(suite):
    """The bounds of the history limit."""
    values = {
        "0-versions-0-days": (0, 0, f.OK),
        "1000-versions": (1000, 0, f.OK),
        "1001-versions": (1001, 0, TAMPERED),
        "65535-versions": (65_535, 0, TAMPERED),
        "36500-days": (10, 36_500, f.OK),
        "36501-days": (10, 36_501, TAMPERED),
        "65535-days": (10, 65_535, TAMPERED),
        "0-versions-90-days": (0, 90, f.OK),
    }
    for name, (versions, days, outcome) in values.items():
        prefix = "ok-" if outcome == f.OK else ""
        suite.resealed(
            f"{prefix}history-limit-{name}",
            f"a history limit of {versions} versions and {days} days",
            "created",
            outcome,
            change=with_history(versions, days),
        )
    right, birth = p.HistoryLimit(10, 90).encode(), p.PAIR.pack(1, b"t" * 16)
    for length in (0, 4, 11, 13, 35):
        data = listed(field(p.HISTORY, (right + birth)[:length]))
        held(suite, f"history-limit-{length}-bytes", f"a history limit of {length} bytes", TAMPERED, "root", data)
    faults = {
        "longer": ("a byte after the origin", right + birth + b"\0"),
        "sequence-0": ("a sequence of 0", number(4, "Q", 0)(right)),
        "after-root": ("a sequence above the root's", number(4, "Q", 2)(right)),
        "origin-0": ("an origin with a sequence of 0", right + bytes(24)),
    }
    for name, (comment, data) in faults.items():
        held(suite, f"history-limit-{name}", f"a history limit: {comment}", TAMPERED, "root", listed(field(p.HISTORY, data)))
    held(suite, "ok-history-limit-origin", "a history limit that a merge has moved", f.OK, "root", listed(field(p.HISTORY, p.HistoryLimit().encode() + birth)))
    twice = listed(field(p.HISTORY, right), field(p.HISTORY, right))
    held(suite, "history-limit-twice", "two history limits", TAMPERED, "root", twice)
    pairs = [p.PAIR.pack(sequence, bytes([tag]) * 16) for sequence, tag in ((1, 2), (1, 3), (9, 1))]
    taken = {
        "ok-taken-changes-3": ("three", b"".join(pairs)),
        "ok-taken-changes-2048": ("as many as there can be", b"".join(p.PAIR.pack(n, bytes(16)) for n in range(1, 2049))),
        "taken-changes-none": ("none", b""),
        "taken-changes-23-bytes": ("23 bytes", pairs[0][:-1]),
        "taken-changes-25-bytes": ("25 bytes", pairs[0] + b"\0"),
        "taken-changes-twice": ("one twice", pairs[0] * 2),
        "taken-changes-descend": ("not ascending", pairs[1] + pairs[0]),
        "taken-changes-sequence-0": ("a sequence of 0", bytes(24)),
        "taken-changes-2049": ("2,049", b"".join(p.PAIR.pack(n, bytes(16)) for n in range(1, 2050))),
    }
    for name, (comment, data) in taken.items():
        outcome = f.OK if name.startswith("ok-") else TAMPERED
        held(suite, name, f"a list of taken changes: {comment}", outcome, "root", listed(field(p.TAKEN, data)))


def lineage(suite):
    keys = [bytes([number]) * 32 for number in range(1, 66)]
    for count in (1, 2, 63, 64):
        suite.resealed(
            f"ok-lineage-{count}",
            f"a lineage of {count} keys",
            "created",
            f.OK,
            change=lambda d, count=count: d.update(lineage=[key.hex() for key in keys[:count]]),
        )
    suite.resealed(
        "ok-lineage-one-key-twice",
        "a lineage with one key twice",
        "created",
        f.OK,
        change=lambda d: d.update(lineage=[keys[0].hex()] * 2),
        reading="The keys need not differ.",
    )
    made = suite.made["created"]
    right = p.lineage_associated(made.vault_id)

    def sealed(plaintext, number=f.LINEAGE, associated=right):
        return f.seal(made.sealer.keys[number], made.random(24, "lineage nonce"), associated, plaintext)

    two = b"".join(keys[:2])
    faults = {
        "of-no-keys": ("no keys", sealed(b"")),
        "of-65-keys": ("65 keys", sealed(b"".join(keys))),
        "of-31-bytes": ("31 bytes", sealed(two[:31])),
        "of-33-bytes": ("33 bytes", sealed(two[:33])),
        "of-63-bytes": ("63 bytes", sealed(two[:63])),
        "empty": ("a field of no bytes", b""),
        "of-39-bytes": ("a field of 39 bytes", sealed(b"")[:39]),
        "not-sealed": ("keys that are not sealed", two + bytes(8)),
        "under-subkey-5": ("sealed under subkey 5", sealed(two, f.BASE)),
        "under-subkey-7": ("sealed under subkey 7", sealed(two, f.KNOWN_VAULTS)),
        "under-another-label": ("sealed under another label", sealed(two, associated=flip(0)(right))),
        "under-another-vault-id": ("sealed under another vault id", sealed(two, associated=flip(-1)(right))),
        "under-file-id": ("sealed under the file id", sealed(two, associated=right[:14] + made.file_id)),
        "damaged": ("a flipped bit in the seal", flip(30)(sealed(two))),
        "tag": ("a flipped bit in the tag", flip(-1)(sealed(two))),
    }
    for name, (comment, data) in faults.items():
        fields = listed(field(p.LINEAGE, data))
        held(suite, f"lineage-{name}", f"a lineage: {comment}", TAMPERED, "root", fields)
    both = listed(field(p.LINEAGE, sealed(two)), field(p.HISTORY, p.HistoryLimit().encode()))
    held(suite, "lineage-before-history", "the lineage before the history limit", TAMPERED, "root", both)
