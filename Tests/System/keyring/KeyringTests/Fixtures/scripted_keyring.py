"""A Secret Service with one collection of items, which it keeps in a file.

Usage: scripted_keyring.py FILE [DEVIATION]...

It does what the protocol says, with unencrypted sessions, except for these:

memory-only-updates   SetSecret changes the value until the service ends, and not in the file
hidden-when-locked    finds and lists no item of the locked collection
first-session-broken  every transfer of a secret in the first session of the process fails

The collection is unlocked at the start. A prompt unlocks it only if somebody answers, and nobody does.
"""

import base64
import json
import os
import sys
import time

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

path, deviations = sys.argv[1], set(sys.argv[2:])
ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/scripted"
PROMPT = ROOT + "/prompt/p1"
SECRET = "org.freedesktop.Secret."
NONE = dbus.ObjectPath("/")
locked = False
sessions = 0


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
        attributes = dbus.Dictionary(self.state["attributes"], signature="ss")
        return {"Attributes": attributes, "Label": self.state["label"], "Locked": dbus.Boolean(locked),
                "Created": dbus.UInt64(self.state["created"]), "Modified": dbus.UInt64(self.state["modified"])}

    def changed(self):
        self.state["modified"] = int(time.time())
        collection.ItemChanged(self.name)

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
        value = dbus.ByteArray(base64.b64decode(self.state.get("unwritten", self.state["value"])))
        return dbus.Struct((session, dbus.ByteArray(b""), value, "text/plain"), signature="oayays")

    @dbus.service.method(SECRET + "Item", in_signature="(oayays)", byte_arrays=True)
    def SetSecret(self, secret):
        require_working(secret[0])
        if locked:
            raise error("IsLocked")
        kept = "unwritten" if "memory-only-updates" in deviations else "value"
        self.state[kept] = base64.b64encode(secret[2]).decode()
        self.changed()
        collection.write()

    @dbus.service.method(SECRET + "Item", out_signature="o")
    def Delete(self):
        if locked:
            raise error("IsLocked")
        del collection.items[self.name]
        self.remove_from_connection()
        collection.write()
        collection.ItemDeleted(self.name)
        return NONE


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
        return [name for name, item in self.visible().items() if attributes.items() <= item.state["attributes"].items()]

    @dbus.service.method(SECRET + "Collection", in_signature="a{ss}", out_signature="ao")
    def SearchItems(self, attributes):
        return paths(self.matching(attributes))

    @dbus.service.method(SECRET + "Collection", in_signature="a{sv}(oayays)b", out_signature="oo", byte_arrays=True)
    def CreateItem(self, properties, secret, replace):
        require_working(secret[0])
        if locked:
            raise error("IsLocked")
        attributes = {str(k): str(v) for k, v in properties[SECRET + "Item.Attributes"].items()}
        now = int(time.time())
        state = {"attributes": attributes, "label": str(properties[SECRET + "Item.Label"]), "created": now,
                 "modified": now, "value": base64.b64encode(secret[2]).decode()}
        found = self.matching(attributes) if replace else []
        if found:
            self.items[found[0]].state = state
            self.write()
            self.ItemChanged(found[0])
            return dbus.ObjectPath(found[0]), NONE
        number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self.items), default=0)
        item = Item(f"{COLLECTION}/{number}", state)
        self.items[item.name] = item
        self.write()
        self.ItemCreated(item.name)
        return dbus.ObjectPath(item.name), NONE

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

    @dbus.service.method(SECRET + "Service", in_signature="a{ss}", out_signature="aoao")
    def SearchItems(self, attributes):
        found, none = paths(collection.matching(attributes)), paths([])
        return (none, found) if locked else (found, none)

    @dbus.service.method(SECRET + "Service", in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, items, session):
        secrets = {item: collection.items[item].GetSecret(session) for item in items if item in collection.items}
        return dbus.Dictionary(secrets, signature="o(oayays)")

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Unlock(self, objects):
        return (paths([]), dbus.ObjectPath(PROMPT)) if locked else (objects, NONE)

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Lock(self, objects):
        global locked
        locked = True
        return objects, NONE

    @dbus.service.method(SECRET + "Service", in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return dbus.ObjectPath(COLLECTION if name == "default" else "/")


class Prompt(dbus.service.Object):
    @dbus.service.signal(SECRET + "Prompt", signature="bv")
    def Completed(self, dismissed, result):
        pass

    @dbus.service.method(SECRET + "Prompt", in_signature="s")
    def Prompt(self, window):
        pass

    @dbus.service.method(SECRET + "Prompt")
    def Dismiss(self):
        self.Completed(True, dbus.String("", variant_level=1))


def require_working(session):
    if "first-session-broken" in deviations and session.endswith("/s1"):
        raise dbus.DBusException("cannot decrypt", name="org.freedesktop.DBus.Error.InvalidArgs")


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
collection = Collection()
others = [Service(bus, ROOT), Prompt(bus, PROMPT)]
name = dbus.service.BusName("org.freedesktop.secrets", bus)
GLib.MainLoop().run()
