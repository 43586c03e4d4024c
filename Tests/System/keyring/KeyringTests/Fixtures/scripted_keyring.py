"""A Secret Service with one collection of items, which it keeps in a file.

Usage: scripted_keyring.py FILE [DEVIATION]...

It does what the protocol says, with unencrypted sessions, except for these:

memory-only-updates   SetSecret changes the value until the service ends, and not in the file
hidden-when-locked    finds and lists no item of the locked collection
first-session-broken  every transfer of a secret in the first session of the process fails
changes-new-values    a new item has the given value and “!”
refuses-refused       the value “refused” cannot be stored, and the error quotes it
stores-during-a-move  another program stores an item of alice when one of bob is created
repeats-signals       sends the signal for a new item 50 times, then that of an item with the user name last
vanishes-when-read    another program deletes an item when its value is asked for
asks-before-deletion  a prompt that is never answered asks whether an item may be deleted
keeps-alice           an item with the user name alice cannot be deleted
deletes-nothing       has no method that deletes an item
deletes-by-no-prompt  names a prompt that does not exist for the deletion of an item
stores-nothing        answers CreateItem with neither an item nor a prompt, and does nothing
refuses-alice         the properties and the value of such an item cannot be read
hides-alice           the value of such an item cannot be read
types-alice           a new item of alice has the content type application/json, whatever its program says
ends-before-bob-is-deleted  ends when an item with the user name bob is to be deleted, and a new process takes over
keepassxc             as KeePassXC 2.7: a search without attributes finds nothing, one in a locked collection is never
                      answered and makes the file FILE.search, items get attributes of the service, {TITLE} in a value is replaced, items are created and
                      deleted by a prompt that needs nobody, and the prompt to replace an item is never answered
kwalletd5             as kwalletd5: the collection is locked at the start, and unlocked by a prompt that needs nobody

Otherwise the collection is unlocked at the start. A prompt unlocks it only if somebody answers, and nobody does.
"""

import base64
import ctypes
import json
import os
import subprocess
import sys
import time

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

path, deviations = sys.argv[1], set(sys.argv[2:])
ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/scripted"
PROMPT = ROOT + "/prompt/p"
SECRET = "org.freedesktop.Secret."
NONE = dbus.ObjectPath("/")
keepassxc, kwallet = "keepassxc" in deviations, "kwalletd5" in deviations
locked = kwallet
# Whether the collection can be unlocked without a person.
is_open = kwallet
sessions = 0
# What each prompt does: a function that returns the result, or None for a prompt that waits for a person.
prompts = []


def prompt(action):
    """The path of a new prompt."""
    prompts.append(action)
    return dbus.ObjectPath(f"{PROMPT}{len(prompts)}")


def paths(items):
    return dbus.Array([dbus.ObjectPath(item) for item in items], signature="o")


def error(name):
    return dbus.DBusException(name, name=SECRET + "Error." + name)


class Base(dbus.service.Object):
    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return self.properties()[name]

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return self.properties()


class Item(Base):
    def __init__(self, name, state):
        super().__init__(bus, name)
        self.name, self.state = name, state

    def properties(self):
        attributes = dict(self.state["attributes"])
        if keepassxc:
            attributes |= {"Title": self.state["label"], "UserName": "", "URL": "", "Notes": "", "Path": "/x", "Uuid": "1"}
        attributes = dbus.Dictionary(attributes, signature="ss")
        return {"Attributes": attributes, "Label": self.state["label"], "Locked": dbus.Boolean(locked),
                "Created": dbus.UInt64(self.state["created"]), "Modified": dbus.UInt64(self.state["modified"])}

    def changed(self):
        self.state["modified"] = int(time.time())
        collection.ItemChanged(self.name)

    def refuse(self, *told):
        if deviations & set(told) and self.state["attributes"].get("username") == "alice":
            raise dbus.DBusException("no", name="org.freedesktop.DBus.Error.Failed")

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        self.refuse("refuses-alice")
        return super().Get(interface, name)

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        self.refuse("refuses-alice")
        return super().GetAll(interface)

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ssv")
    def Set(self, interface, name, value):
        if locked:
            raise error("IsLocked")
        self.state[name.lower()] = {str(k): str(v) for k, v in value.items()} if name == "Attributes" else str(value)
        self.changed()
        collection.write()

    @dbus.service.method(SECRET + "Item", in_signature="o", out_signature="(oayays)")
    def GetSecret(self, session):
        require_working(session)
        if locked:
            raise error("IsLocked")
        self.refuse("refuses-alice", "hides-alice")
        if "vanishes-when-read" in deviations:
            self.delete()
            raise error("NoSuchObject")
        value = base64.b64decode(self.state.get("unwritten", self.state["value"]))
        if keepassxc:
            value = value.replace(b"{TITLE}", self.state["label"].encode())
        value = dbus.ByteArray(value)
        kind = self.state.get("type", "text/plain")
        return dbus.Struct((session, dbus.ByteArray(b""), value, kind), signature="oayays")

    @dbus.service.method(SECRET + "Item", in_signature="(oayays)", byte_arrays=True)
    def SetSecret(self, secret):
        require_working(secret[0])
        if locked:
            raise error("IsLocked")
        refuse_if_told(secret[2])
        kept = "unwritten" if "memory-only-updates" in deviations else "value"
        self.state[kept] = base64.b64encode(secret[2]).decode()
        self.state["type"] = str(secret[3])
        self.changed()
        collection.write()

    @dbus.service.method(SECRET + "Item", out_signature="o")
    def Delete(self):
        if locked:
            raise error("IsLocked")
        if "keeps-alice" in deviations and self.state["attributes"]["username"] == "alice":
            raise dbus.DBusException("no", name="org.freedesktop.DBus.Error.Failed")
        if "ends-before-bob-is-deleted" in deviations and self.state["attributes"]["username"] == "bob":
            hand_over()
        if "asks-before-deletion" in deviations:
            return prompt(None)
        if "deletes-nothing" in deviations:
            raise dbus.DBusException("no", name="org.freedesktop.DBus.Error.UnknownMethod")
        if "deletes-by-no-prompt" in deviations:
            return dbus.ObjectPath(ROOT + "/nothing")
        if keepassxc:
            return prompt(self.delete)
        self.delete()
        return NONE

    def delete(self):
        del collection.items[self.name]
        self.remove_from_connection()
        collection.write()
        collection.ItemDeleted(self.name)
        return ""


class Collection(Base):
    SUPPORTS_MULTIPLE_OBJECT_PATHS = True

    def __init__(self):
        super().__init__(bus, COLLECTION)
        self.add_to_connection(bus, ROOT + "/aliases/default")
        self.items = {}
        if os.path.exists(path):
            with open(path) as file:
                self.items = {name: Item(name, state) for name, state in json.load(file).items()}

    def write(self):
        states = {name: {k: v for k, v in item.state.items() if k != "unwritten"} for name, item in self.items.items()}
        with open(path + ".new", "w") as file:
            json.dump(states, file)
        os.rename(path + ".new", path)

    def visible(self):
        return {} if locked and "hidden-when-locked" in deviations else self.items

    def properties(self):
        return {"Locked": dbus.Boolean(locked), "Label": "Scripted", "Items": paths(self.visible())}

    def matching(self, attributes):
        if keepassxc and not attributes:
            return []
        return [name for name, item in self.visible().items() if attributes.items() <= item.state["attributes"].items()]

    @dbus.service.method(SECRET + "Collection", in_signature="a{ss}", out_signature="ao")
    def SearchItems(self, attributes):
        return paths(self.matching(attributes))

    @dbus.service.method(SECRET + "Collection", in_signature="a{sv}(oayays)b", out_signature="oo", byte_arrays=True)
    def CreateItem(self, properties, secret, replace):
        require_working(secret[0])
        if locked:
            raise error("IsLocked")
        if "stores-nothing" in deviations:
            return NONE, NONE
        attributes = {str(k): str(v) for k, v in properties[SECRET + "Item.Attributes"].items()}
        now = int(time.time())
        refuse_if_told(secret[2])
        value = secret[2] + (b"!" if "changes-new-values" in deviations else b"")
        state = {"attributes": attributes, "label": str(properties[SECRET + "Item.Label"]), "created": now,
                 "modified": now, "value": base64.b64encode(value).decode(), "type": str(secret[3])}
        found = self.matching(attributes) if replace else []
        if keepassxc:
            return NONE, prompt(None if found else lambda: self.create(state))
        if found:
            self.items[found[0]].state = state
            self.write()
            self.ItemChanged(found[0])
            return dbus.ObjectPath(found[0]), NONE
        return self.create(state), NONE

    def create(self, state):
        number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self.items), default=0)
        item = Item(f"{COLLECTION}/{number}", state)
        self.items[item.name] = item
        user = state["attributes"].get("username")
        if "types-alice" in deviations and user == "alice":
            state["type"] = "application/json"
        self.write()
        self.ItemCreated(item.name)
        if "stores-during-a-move" in deviations and user == "bob":
            value = base64.b64encode(b"another program's").decode()
            self.create(state | {"attributes": {"service": "svc", "username": "alice"}, "value": value})
        if "repeats-signals" in deviations and user != "last":
            self.repeat_signal(item, 50, state | {"attributes": {"service": "svc", "username": "last"}})
        return dbus.ObjectPath(item.name)

    def repeat_signal(self, item, times, last):
        self.ItemChanged(item.name)
        if times == 1:
            self.create(last)
        else:
            GLib.timeout_add(1, self.repeat_signal, item, times - 1, last)
        return False

    @dbus.service.signal(SECRET + "Collection", signature="o")
    def ItemCreated(self, item):
        pass

    @dbus.service.signal(SECRET + "Collection", signature="o")
    def ItemChanged(self, item):
        pass

    @dbus.service.signal(SECRET + "Collection", signature="o")
    def ItemDeleted(self, item):
        pass


class Service(Base):
    def properties(self):
        return {"Collections": paths([COLLECTION])}

    @dbus.service.method(SECRET + "Service", in_signature="sv", out_signature="vo")
    def OpenSession(self, algorithm, argument):
        global sessions
        if algorithm != "plain":
            raise dbus.DBusException("no", name="org.freedesktop.DBus.Error.NotSupported")
        sessions += 1
        return dbus.String("", variant_level=1), dbus.ObjectPath(f"{ROOT}/session/s{sessions}")

    @dbus.service.method(SECRET + "Service", in_signature="a{ss}", out_signature="aoao", async_callbacks=("reply", "fail"))
    def SearchItems(self, attributes, reply, fail):
        if keepassxc and locked:
            open(path + ".search", "w").close()
            return
        found, none = paths(collection.matching(attributes)), paths([])
        reply(*((none, found) if locked else (found, none)))

    @dbus.service.method(SECRET + "Service", in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, items, session):
        secrets = {item: collection.items[item].GetSecret(session) for item in items if item in collection.items}
        return dbus.Dictionary(secrets, signature="o(oayays)")

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Unlock(self, objects):
        return (paths([]), prompt(self.unlock if is_open else None)) if locked else (objects, NONE)

    def unlock(self):
        global locked
        locked = False
        return paths([COLLECTION])

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Lock(self, objects):
        global locked, is_open
        locked, is_open = True, False
        self.CollectionChanged(COLLECTION)
        for name in collection.items:
            collection.ItemChanged(name)
        return objects, NONE

    @dbus.service.signal(SECRET + "Service", signature="o")
    def CollectionChanged(self, path):
        pass

    @dbus.service.method(SECRET + "Service", in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return dbus.ObjectPath(COLLECTION if name == "default" else "/")


class Wallet(dbus.service.Object):
    @dbus.service.method("org.kde.KWallet", in_signature="s", out_signature="b")
    def isOpen(self, wallet):
        return is_open


class Prompt(dbus.service.FallbackObject):
    """All prompts."""

    def complete(self, path, dismissed, result):
        signal = dbus.lowlevel.SignalMessage(path, SECRET + "Prompt", "Completed")
        signal.append(dismissed, result, signature="bv")
        bus.send_message(signal)

    @dbus.service.method(SECRET + "Prompt", in_signature="s", path_keyword="path")
    def Prompt(self, window, path):
        action = prompts[int(path.rsplit("p", 1)[1]) - 1]
        if action:
            GLib.idle_add(lambda: self.complete(path, False, action()))

    @dbus.service.method(SECRET + "Prompt", path_keyword="path")
    def Dismiss(self, path):
        self.complete(path, True, "")


def refuse_if_told(value):
    if "refuses-refused" in deviations and value == b"refused":
        raise dbus.DBusException("the value “refused” is not good", name="org.freedesktop.DBus.Error.Failed")


def require_working(session):
    if "first-session-broken" in deviations and session.endswith("/s1"):
        raise dbus.DBusException("cannot decrypt", name="org.freedesktop.DBus.Error.InvalidArgs")


def hand_over():
    """Ends this process when another one, without a deviation, waits for its name."""
    subprocess.Popen([sys.executable, sys.argv[0], path])
    daemon = dbus.Interface(bus.get_object("org.freedesktop.DBus", "/org/freedesktop/DBus"), "org.freedesktop.DBus")
    while len(daemon.ListQueuedOwners("org.freedesktop.secrets")) < 2:
        time.sleep(0.01)
    os._exit(0)


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
collection = Collection()
others = [Service(bus, ROOT), Prompt(bus, ROOT + "/prompt"), Wallet(bus, "/modules/kwalletd5")]
for program in deviations & {"keepassxc", "kwalletd5"}:
    ctypes.CDLL(None).prctl(15, program.encode())  # PR_SET_NAME: the caller knows these services by their name
name = dbus.service.BusName("org.freedesktop.secrets", bus)
GLib.MainLoop().run()
