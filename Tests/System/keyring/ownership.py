"""What Coffer may do with the items of a keyring: a second implementation of the rule, for random_sequences.py.

The service and the user name are an item's identity; `account` stands for a missing `username`. Attributes that begin
with `xdg:` or `coffer:`, those that Coffer wrote as metadata, and `target=default` do not count.
"""

import base64
import collections
import json
import urllib.parse

Item = collections.namedtuple("Item", "path attributes label value created modified")


class Broken(Exception):
    """Coffer did what it may not."""


def require(holds, text):
    if not holds:
        raise Broken(text)


def shown(items):
    return ", ".join(f"{dict(item.attributes)} {item.label!r} {item.value!r}" for item in items)


def name(item):
    attributes = dict(item.attributes)
    service, account = attributes.get("service"), attributes.get("username", attributes.get("account"))
    return (service, account) if service and account else None


def is_stored(item, value):
    """Whether the item has the value, unencoded or as base64."""
    return item.value in (value.encode(), b"coffer:base64:" + base64.b64encode(value.encode()))


def distinction(item):
    """The attributes by which another program tells the item from others with its name."""
    attributes = dict(item.attributes)
    own = {urllib.parse.unquote(text) for text in attributes.get("coffer:attributes", "").split()}
    identity = {"service", "username"}
    return {
        (key, value)
        for key, value in attributes.items()
        if key not in identity | own
        and not key.startswith(("xdg:", "coffer:"))
        and (key, value) != ("target", "default")
    }


def general(item):
    return all(key == "application" for key, _ in distinction(item))


def theirs(item):
    """The attributes that another program wrote, with the identity."""
    attributes = dict(item.attributes)
    own = {urllib.parse.unquote(text) for text in attributes.get("coffer:attributes", "").split()}
    return {(key, value) for key, value in attributes.items() if key not in own and not key.startswith("coffer:")}


def collection(item):
    return item.path.rsplit("/", 1)[0]


def newest(items):
    return [item for item in items if item.modified == max(other.modified for other in items)]


def different(items):
    """The number of different secrets."""
    return len({(frozenset(distinction(item)), item.label) for item in items})


class Model:
    """The items before an operation. Each check compares them with the items after it, and then keeps those."""

    def __init__(self, items):
        self.items = items

    def adopt(self, items):
        self.items = items

    def named(self, wanted):
        return [item for item in self.items.values() if name(item) == wanted]

    def check_unchanged(self, after, except_for=()):
        """No item but those in `except_for` was changed, and none was added."""
        kept = {path for path in self.items if path not in {item.path for item in except_for}}
        lost = [self.items[path] for path in kept if path not in after]
        changed = [self.items[path] for path in kept if path in after and after[path] != self.items[path]]
        require(not lost, f"lost: {shown(lost)}")
        require(not changed, f"changed: {shown(changed)} to {shown(after[item.path] for item in changed)}")
        if not except_for:
            added = [after[path] for path in after if path not in self.items]
            require(not added, f"added: {shown(added)}")
            self.adopt(after)

    def check_get(self, wanted, status, value):
        found = self.named(wanted)
        require(status == (0 if found else 1), f"status {status} of get with {len(found)} items")
        if found:
            require(any(is_stored(item, value.decode()) for item in newest(found)),
                    f"get printed {value}, and the newest is one of {shown(newest(found))}")  # fmt: skip

    def check_list(self, service, lines):
        expected = sorted({name(item)[1] for item in self.items.values() if name(item) and name(item)[0] == service})
        require(lines == expected, f"list printed {lines}, not {expected}")

    def check_export(self, result):
        expected = {name(item) for item in self.items.values() if name(item)}
        if not expected:
            return require(result.returncode == 1, f"export of nothing ended with {result.returncode}")
        found = {(one["service"], one["account"]): one["value"] for one in json.loads(result.stdout)["secrets"]}
        require(set(found) == expected, f"export has {set(found)}, not {expected}")
        for wanted, value in found.items():
            self.check_get(wanted, 0, value.encode())

    def check_copy(self, result):
        require(result.returncode == 0, f"copy ended with {result.returncode}: {result.stderr.decode()}")
        unnamed = [item for item in self.items.values() if name(item) is None]
        named = collections.Counter(name(item) for item in self.items.values() if name(item))
        hidden = sum(different(self.named(wanted)) - 1 for wanted in named)
        lines = result.stderr.decode().splitlines()
        said = sum("was not copied" in line for line in lines)
        require(said == len(unnamed) + hidden, f"copy said of {said} items that it passed over them, "
                f"not of {len(unnamed)} without a name and {hidden} with another's: {lines}")  # fmt: skip

    def check_set(self, wanted, value, options, status, after):
        require(status == 0, f"set ended with {status}")
        found = self.named(wanted)
        candidates = found if len(found) == 1 else [item for item in found if general(item)]
        added = [item for path, item in after.items() if path not in self.items]
        if not candidates:
            self.check_unchanged(after, [Item(None, (), "", b"", 0, 0)])
            require(len(added) == 1 and name(added[0]) == wanted, f"set added {shown(added)}")
            require(is_stored(added[0], value), f"set stored {added[0].value}")
            require(not {key for key, _ in theirs(added[0])} - {"service", "username", "xdg:schema"},
                    f"set gave the new item {shown(added)}")  # fmt: skip
            default = f"Password for '{wanted[1]}' on '{wanted[0]}'"
            require("--label" in options or added[0].label == default, f"set gave the new item {shown(added)}")
            self.check_distinct(added[0], set(), found)
            return self.adopt(after)
        written = [item for item in after.values() if is_stored(item, value)]
        require(len(written) == 1 and not added, f"set wrote {shown(written)} and added {shown(added)}")
        before = self.items[written[0].path]
        require(before in newest(candidates), f"set wrote {shown([before])}, which was not the newest")
        given = {text.split("=")[0] for option, text in zip(options, options[1:]) if option == "--attribute"}
        kept = {(key, value) for key, value in theirs(before) if key not in given}
        require(kept <= theirs(written[0]), f"set changed {shown([before])} to {shown(written)}")
        if "--label" not in options:
            require(before.label == written[0].label, f"set changed the label of {shown([before])} to {shown(written)}")
        removed = [item for item in found if item.path not in after]
        for item in removed:
            alike = {pair for pair in distinction(item) ^ distinction(before) if pair[0] != "application"}
            same = distinction(item) == distinction(before) and item.label == before.label
            require(collection(item) == collection(before) and not alike and (same or item.value == before.value),
                    f"set of {shown([before])} deleted {shown([item])}")  # fmt: skip
        self.check_distinct(written[0], set(before.attributes), [item for item in found if item.path in after])
        self.check_unchanged(after, [before, *removed])
        self.adopt(after)

    def check_distinct(self, written, before, others):
        """No program that searches for one of the others finds the item that was written."""
        for other in others:
            taken = distinction(other) - before
            require(other.path == written.path or not taken or not taken <= set(written.attributes),
                    f"set gave {shown([written])} what distinguishes {shown([other])}")  # fmt: skip

    def check_remove(self, wanted, all_, status, after):
        found = self.named(wanted)
        if not found or (different(found) > 1 and not all_):
            require(status == (64 if found else 1), f"remove ended with {status}")
            return self.check_unchanged(after)
        require(status == 0, f"remove ended with {status}")
        require(not [item for item in found if item.path in after], "remove left an item")
        self.check_unchanged(after, found)
        self.adopt(after)

    def check_move(self, old, new, all_, force, status, after):
        found, replaced = self.named(old), self.named(new)
        if not found:
            expected = 1
        elif different(found) > 1 and not all_:
            expected = 64
        elif old == new:
            expected = 0
        elif replaced and not force:
            expected = 73
        elif different(replaced) > 1 and not all_:
            expected = 64
        else:
            expected = 0
        require(status == expected, f"move ended with {status}, not {expected}")
        if expected or old == new:
            return self.check_unchanged(after)
        added = [item for path, item in after.items() if path not in self.items]
        require(not [item for item in found + replaced if item.path in after], "move left an item")
        self.check_unchanged(after, found + replaced)

        def content(item):
            default = f"Password for '{name(item)[1]}' on '{name(item)[0]}'"
            key = "username" if "username" in dict(item.attributes) else "account"
            kept = theirs(item) - {("service", name(item)[0]), (key, name(item)[1])}
            return sorted(kept), item.label.replace(default, "the default"), item.value, collection(item)

        require(sorted(map(content, found)) == sorted(map(content, added)) and all(name(item) == new for item in added),
                f"move of {shown(found)} made {shown(added)}")  # fmt: skip
        self.adopt(after)
