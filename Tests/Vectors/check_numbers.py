"""Each numbered check of VaultFormat.md has a vector that only this check refuses, and so has each check of a lookup.

The bytes that the page shows are those of the example. Part of `generate.py --check`."""

import json
import os
import re

import commit_check
import vault_described as d
import vault_format as f
import vault_lookup
import vault_reader as r
import vector_lookups
from vector_bases import BASES, put
from vector_outcome import credential_of
from vector_suite import edited

# R3: no lookup asks for a name that R2 refuses.
IMPLIED_IN_LOOKUPS = {"R2"}
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Sources/CofferVault/Vault.docc/VaultFormat.md")


def refusal(file, entry):
    """The number of the check that refuses the file, or None."""
    try:
        r.read_vault(file, credential_of(entry["credential"]), r.Limits(**entry.get("limits", {})))
    except f.Refused as refused:
        return refused.check
    except Exception:  # a check is left out, and what it would have refused leads nowhere
        return None
    return None


def held(refused, refusal=refusal):
    """The numbers of the checks without which nothing refuses a file that they refuse."""
    found = set()
    for file, entry in refused:
        check = refusal(file, entry)
        if not check or check in found:
            continue
        f.left_out.add(check)
        if refusal(file, entry) is None:
            found.add(check)
        f.left_out.clear()
    return found


def refusal_of_lookup(file, entry):
    """The number of the check that refuses the lookup of the name in `entry`, or None."""
    try:
        limits = r.Limits(**entry.get("limits", {}))
        vault_lookup.opened(file, credential_of(entry["credential"]), limits).find(*entry["name"])
    except f.Refused as refused:
        return refused.check
    except Exception:  # as above
        return None
    return None


def refused_lookups(files):
    """The lookups of lookups.json that must be refused. Where each lookup is refused, one name stands for all."""
    vectors = {entry["name"]: entry for entry in json.loads(files["vectors.json"])}
    lookups = json.loads(files[vector_lookups.NAME])
    service = vector_lookups.SERVICE
    names = [(one, vector_lookups.NOT_THERE) for outcome in lookups["refused"].values() for one in outcome]
    for case in lookups["lookups"]:
        for one in case["lookups"]:
            if len(one["expect"]) == 1 and isinstance(one["expect"][0], str) and one["expect"][0] != vector_lookups.MISSING:
                names.append((case["vector"], (one.get("service", service), one["account"])))
    for vector, name in names:
        entry = vectors[vector]
        yield edited(files[entry["vault"]], entry), entry | {"name": name}
    yield from too_long()


def numbers_of_lookups(page):
    """The checks that the page's table has for a lookup, and those of which a lookup has none."""
    made, none = set(), set()
    for checks, cell in re.findall(r"(?m)^\| ([A-Z]\d[^|]*) \| [^|]* \| [^|]* \| ([^|]*) \|$", page):
        for first, last in re.findall(r"([A-Z]\d+)(?: to ([A-Z]\d+))?", checks):
            numbers = range(int(first[1:]), int((last or first)[1:]) + 1)
            (none if cell.startswith("none") else made).update(f"{first[0]}{number}" for number in numbers)
    return made, none - made


def refused_vectors(files):
    for entry in json.loads(files["vectors.json"]):
        if entry["expect"]["outcome"] not in (f.OK, f.RECOVERED):
            yield edited(files[entry["vault"]], entry), entry
    yield from too_long()


def too_long():
    """Files that are too long for a vector that is kept, each with a name that a lookup does not find."""
    # A value.
    padded = f.pad(bytes(f.MAXIMUM_VALUE + 1))
    tamper = lambda part, value: padded if part == "frame 0 padded value" else value
    description, credential = BASES["created"]
    made = d.NewFile(description | {"tail": [[put("one", "1")]]}, tamper=tamper)
    entry = {"credential": {"key_text": f.key_text(credential["key_text"]).decode()}}
    yield made.file, entry | {"name": (vector_lookups.SERVICE, "one")}
    # A root.
    yield d.NewFile(commit_check.with_root(longer=1)).file, entry | {"name": vector_lookups.NOT_THERE}


def wrong_digits(page, files):
    """The bytes that the page's example shows, and that are not in the example."""
    known = re.sub(r"\s", "", re.sub(r"(?m)^.{22}", "", files["example.txt"].decode())) + files["example.vault"].hex()
    for block in re.findall(r"(?ms)^```\n(.*?)^```", page):
        yield from (one for one in re.findall(r"\b[0-9a-f]{16,}", block) if one not in known)
        if re.match(r"[0-9a-f]{32} ", block):  # the record, without its padding
            record = "".join(re.findall(r"(?m)^((?:[0-9a-f]+ )+) ", block)).replace(" ", "")
            yield from [] if record in known else [record]


def failures(files):
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    for digits in wrong_digits(page, files):
        yield f"VaultFormat.md shows bytes that the example does not have: {digits}"
    numbers = set(re.findall(r"\*\*([A-Z]\d+)\*\*", page))
    found = held(refused_vectors(files))
    for number in sorted(numbers - found):
        yield f"no vector is refused by the check {number} alone"
    for number in sorted(found - numbers):
        yield f"VaultFormat.md has no check {number}"
    made, none = numbers_of_lookups(page)
    found = held(refused_lookups(files), refusal_of_lookup)
    for number in sorted((made & numbers) - found - IMPLIED_IN_LOOKUPS):
        yield f"no lookup is refused by the check {number} alone"
    for number in sorted((found - made) | (numbers - made - none)):
        yield f"the table under Reading in VaultFormat.md does not say that a lookup makes the check {number}"
