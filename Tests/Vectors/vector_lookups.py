"""What a lookup of one name must answer in the vaults of vectors.json. It checks less than the reader of a whole vault."""

import json

import vault_format as f
import vault_lookup
import vault_reader as r
from vector_outcome import credential_of
from vector_suite import edited

NAME = "lookups.json"
SERVICE = "com.example.app"
MISSING = "missing"
# The file has so many names of an intact vault.
MOST_NAMES = 12
# Of a vault with a fault it has so many names that are alike: found, missing or refused.
MOST_ALIKE = 2
NOT_THERE = (SERVICE, "not there")
# Intact vaults that take long, or of which the vectors themselves say all.
LEFT_OUT = ("values", "passphrases", "default-cost", "largest-header", "largest-block", "longest-tail", "most-recent")


def results_of(file, entry, names):
    """The result of the lookup of each name. Or the outcome of all, if each lookup is refused, whatever the name is."""
    try:
        lookup = vault_lookup.opened(file, credential_of(entry["credential"]), r.Limits(**entry.get("limits", {})))
    except f.Refused as refused:
        return refused.outcome
    return {name: result_of(lookup, *name) for name in names}


def result_of(lookup, service, account):
    try:
        found = lookup.find(service, account)
    except f.Refused as refused:
        return refused.outcome
    return value_of(found.value) if found else MISSING


def value_of(data):
    """A value as it is in the file: itself, or its length and its hash."""
    if len(data) <= 64:
        return {"value": data.hex()}
    return {"value_length": len(data), "value_blake2b_256": f.blake2b(256, data).hex()}


def changes_of(entry, description):
    """All changes that the description has."""
    items = [one if "remove" in one else {"put": one} for one in description["base"].get("items", [])]
    return items + [change for transaction in description.get("tail", []) for change in transaction]


def names_of(entry, description):
    """The names of the vault, and one that it does not have."""
    found = [next(iter(change.values())) for change in changes_of(entry, description)]
    return sorted({(one["service"], one["account"]) for one in found}) + [NOT_THERE]


def is_whole(entry):
    return entry["expect"]["outcome"] in (f.OK, f.RECOVERED)


def chosen(suite):
    """The vectors with a fault, and some of the intact ones, with their descriptions."""
    for entry in suite.entries:
        base = entry["vault"].removesuffix(".vault")
        is_intact = is_whole(entry) and not ("edits" in entry or "truncate" in entry)
        if entry["name"] in suite.descriptions and (not is_whole(entry) or is_intact and base not in LEFT_OUT):
            yield entry, suite.descriptions[entry["name"]]


def text(suite, files):
    """The content of lookups.json."""
    refused, lines = {}, []
    for entry, description in chosen(suite):
        outcome = entry["expect"]["outcome"]
        results = results_of(edited(files[entry["vault"]], entry), entry, names_of(entry, description))
        if isinstance(results, str):
            refused.setdefault(results, []).append(entry["name"])
            continue
        lookups = []
        for (service, account), result in fewer(results, entry).items():
            named = {"account": account} if service == SERVICE else {"service": service, "account": account}
            # A lookup may check more than it must, and refuse what the reader of the whole vault refuses.
            also = [] if is_whole(entry) or result == outcome else [outcome]
            lookups.append(named | {"expect": [result, *also]})
        lines.append(json.dumps({"vector": entry["name"], "lookups": lookups}))
    names = ",\n".join(f"{json.dumps(one)}: {json.dumps(found)}" for one, found in sorted(refused.items()))
    return f'{{"refused": {{\n{names}\n}},\n"lookups": [\n' + ",\n".join(lines) + "\n]}\n"


def fewer(results, entry):
    """Some of the names: of those that are alike, the first ones."""
    if is_whole(entry):
        return dict([*results.items()][: MOST_NAMES - 1]) | {NOT_THERE: results[NOT_THERE]}
    found, alike = {}, {}
    for name, result in results.items():
        kind = result if isinstance(result, str) else "value"
        alike[kind] = alike.get(kind, 0) + 1
        if alike[kind] <= MOST_ALIKE or name == NOT_THERE:
            found[name] = result
    return found


def failures(suite, files):
    """Yields a line for each lookup that contradicts its vector, what was stored, or what is stated below."""
    for entry, description in chosen(suite):
        name, expect, names = entry["name"], entry["expect"], names_of(entry, description)
        results = results_of(edited(files[entry["vault"]], entry), entry, names)
        if isinstance(results, str):
            if results != expect["outcome"]:
                yield f"{NAME}: {name}: every lookup is {results}"
            results = dict.fromkeys(names, results)
        present = {(one["service"], one["account"]): one for one in expect.get("items", [])}
        stored = {}
        for change in changes_of(entry, description):
            for one in change.values():
                more = [value_of(bytes.fromhex(one["value"]))] if "value" in one else [MISSING]
                stored.setdefault((one["service"], one["account"]), []).extend(more)
        for key, result in results.items():
            if is_whole(entry):
                newest = stored[key][-1] if key in present else MISSING
                if result != newest:
                    yield f"{NAME}: {name}: {key}: {result}"
            elif isinstance(result, dict) and result not in stored.get(key, []):
                yield f"{NAME}: {name}: {key} has a value that was not stored under this name"
            elif isinstance(result, str) and result not in (MISSING, expect["outcome"]):
                yield f"{NAME}: {name}: {key}: {result}"
        if name in STATED:
            refused = {account for (_, account), result in results.items() if result == expect["outcome"]}
            every = {account for _, account in results}
            wanted = every if STATED[name] is ALL else set(STATED[name])
            if refused != wanted:
                yield f"{NAME}: {name}: refused are {sorted(refused)}, and not {sorted(wanted)}"
    for name in STATED.keys() - suite.descriptions.keys():
        yield f"{NAME}: there is no vector {name}"


ALL = object()
# What a lookup must see, as the table under Reading says: the accounts whose lookups are refused, and no others.
STATED = {
    # Leases, recent changes, the keys of the lineage, gaps, other blocks and other records are not looked at.
    "leases-101": [],
    "leases-reserved": [],
    "index-recent-damaged-tag": [],
    "recent-descending": [],
    "recent-below-floor": [],
    "lineage-damaged": [],
    "gap-before-block-1": [],
    "gap-before-root-created": [],
    "items-exchanged-across-blocks": [],
    "version-damaged": [],
    "versions-exchanged-within-block": [],
    "version-of-another-name-older-base": [],
    "remove-first-in-base": [],
    "remove-twice-in-tail": [],
    "replaced-value-in-tail": [],
    # The root and its fields, the tail, and the length of each value in it concern every lookup.
    "copied-state-0-root-tag": ALL,
    "older-state-end-above": ALL,
    "created-state-both-tags": ALL,
    "root-entries-exchanged": ALL,
    "root-block-1-offset-one-less": ALL,
    "root-block-0-length-39": ALL,
    "root-something-follows": ALL,
    "index-gap-before-recent": ALL,
    "index-gap-before-root": ALL,
    "index-block-beyond-root": ALL,
    "index-block-same-offset": ALL,
    "recent-length-39": ALL,
    "recent-2049": ALL,
    "recent-floor-above-root": ALL,
    "recent-unnamed": ALL,
    "history-limit-1001-versions": ALL,
    "history-limit-after-root": ALL,
    "lineage-of-65-keys": ALL,
    "lineage-of-33-bytes": ALL,
    "former-slots-descend": ALL,
    "former-slots-trace-2": ALL,
    "former-slots-257": ALL,
    "former-slots-label-65": ALL,
    "taken-changes-descend": ALL,
    "fields-critical-first-root": ALL,
    "fields-unknown-65537-root": ALL,
    "fields-descending-root": ALL,
    "frame-1-damaged": ALL,
    "frame-sequence-gap-everywhere": ALL,
    "frame-chained-to-root": ALL,
    "frame-value-length-73": ALL,
    "frame-value-length-16777320": ALL,
    "frame-padding-no-80-in-remove": ALL,
    "frame-last-taken-out": ALL,
    "tail-one-frame-longer": ALL,
    # The value that is returned.
    "frame-damaged-value": ["deploy"],
    "frame-3-damaged-value": ["session"],
    "base-value-damaged-tag": ["33 bytes"],
    "base-values-swapped": ["database"],
    "values-swapped-and-tags": ["deploy", "session"],
    "value-padding-33-bytes-in-base": ["database"],
    "value-sealed-under-another-sequence-in-frame": ["session"],
    "shown-item-offset-in-tail": ["github"],
    "shown-item-length-104": ["github"],
    "shown-item-value-after-block": ["database"],
    # The newest record of the name.
    "record-kind-3": ["probe"],
    "record-kind-2-in-base": ["probe"],
    "record-something-follows": ["probe"],
    "record-account-renamed-in-base": ["probe"],
    "version-of-another-name-newest-tail": ["probe"],
    "fields-critical-first-put": ["probe"],
    "fields-critical-first-remove-in-base": ["probe"],
    "fields-unknown-65537-put-in-base": ["probe"],
    "field-attributes-unsorted": ["probe"],
    "field-label-1025-in-base": ["probe"],
    "remove-renamed": ["old"],
    "remove-without-fields": ["old"],
    "base-remove-with-place": ["erased"],
    # The block that can have the name, with its directory.
    "block-1-damaged-tag": ["github", "not there"],
    "root-block-0-first-sequence-one-more": ["database"],
    "root-block-1-count-zero": ["github", "not there"],
    "root-block-0-offset-one-more": ["database"],
    "directory-gap-after": ["github", "not there"],
    "directory-places-exchanged": ["github", "not there"],
    "directory-gap-between-items": ["github"],
    "items-exchanged-in-block": ["database"],
    "item-newer-than-root": ["one", "not there"],
}
