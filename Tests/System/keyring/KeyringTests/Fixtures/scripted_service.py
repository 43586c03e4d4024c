"""A Secret Service that follows a script. It has one locked collection with one item: "s3cret" for svc/alice.

Usage: scripted_service.py LOG silent | silent-after-session | dismiss | answer SECONDS | useless | never
                              | unsearched | counted NUMBER | doubled NUMBER | slow NUMBER SECONDS
                              | broken-sessions | no-session | no-first-session | bad-session | hostile NAME

silent                 owns the bus name and answers no call
silent-after-session   opens a session and does not answer a search
dismiss                dismisses each prompt at once
answer SECONDS         completes each prompt after SECONDS
useless                completes each prompt at once, and unlocks nothing
never                  leaves each prompt open until the caller dismisses it
unsearched             finds nothing in the locked collection, and leaves each prompt open
counted NUMBER         has an unlocked collection with NUMBER items, svc/name 1 and so on, and logs every call
doubled NUMBER         as counted, with two items of each name, in a process with the name of gnome-keyring
slow NUMBER SECONDS    has such a collection as counted, and takes SECONDS for each call
broken-sessions        has an unlocked collection, and refuses each transfer of a secret after a second
no-session             has an unlocked collection, and never answers a call for a session
no-first-session       has such a collection, and never answers the first call for a session
bad-session            has an unlocked collection, and its first session transfers no secret
hostile NAME           has an unlocked collection, and answers as the function NAME below, against the protocol

Appends the name of each called method that matters to LOG.
"""

import os
import pathlib
import signal
import sys
import time

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

log, mode = sys.argv[1], sys.argv[2]
ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/scripted"
ITEM = COLLECTION + "/1"
PROMPT = ROOT + "/prompt/p1"
SECRET = "org.freedesktop.Secret."
locked = mode not in ("hostile", "counted", "doubled", "slow", "bad-session", "broken-sessions", "no-session", "no-first-session")
items = {}
sessions = 0
unanswered = mode == "no-first-session"


def note(text, counts=False):
    if (mode in ("counted", "doubled")) != counts:
        return
    with open(log, "a") as file:
        file.write(text + "\n")


class Base(dbus.service.Object):
    def properties(self, interface):
        raise NotImplementedError

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return self.properties(interface)[name]

    @dbus.service.method(dbus.PROPERTIES_IFACE, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return self.properties(interface)


class Service(Base):
    def properties(self, interface):
        return {"Collections": dbus.Array([dbus.ObjectPath(COLLECTION)], signature="o")}

    @dbus.service.method(SECRET + "Service", in_signature="sv", out_signature="vo", async_callbacks=("reply", "fail"))
    def OpenSession(self, algorithm, argument, reply, fail):
        global unanswered
        if mode == "no-session" or unanswered:
            unanswered = False
            return
        try:
            reply(*self.open_session(algorithm))
        except dbus.DBusException as error:
            fail(error)

    def open_session(self, algorithm):
        if algorithm != "plain":
            raise dbus.DBusException("no", name="org.freedesktop.DBus.Error.NotSupported")
        global sessions
        sessions += 1
        note("OpenSession")
        return dbus.String("", variant_level=1), dbus.ObjectPath(f"{ROOT}/session/s{sessions}")

    @dbus.service.method(SECRET + "Service", in_signature="a{ss}", out_signature="aoao")
    def SearchItems(self, attributes):
        if mode == "silent-after-session":
            signal.pause()
        if mode == "unsearched" and locked:
            attributes = {"service": "none"}
        found = [path for path, item in items.items() if attributes.items() <= item.attributes.items()]
        none = dbus.Array([], signature="o")
        found = dbus.Array(found, signature="o")
        return (none, found) if locked else (found, none)

    @dbus.service.method(SECRET + "Service", in_signature="ao", out_signature="aoo")
    def Unlock(self, objects):
        note("Unlock")
        if locked:
            return dbus.Array([], signature="o"), dbus.ObjectPath(PROMPT)
        return objects, dbus.ObjectPath("/")

    @dbus.service.method(SECRET + "Service", in_signature="aoo", out_signature="a{o(oayays)}", byte_arrays=True)
    def GetSecrets(self, paths, session):
        return dbus.Dictionary({path: items[path].GetSecret(session) for path in paths}, signature="o(oayays)")

    @dbus.service.method(SECRET + "Service", in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return dbus.ObjectPath(COLLECTION)


class Collection(Base):
    def properties(self, interface):
        return {"Locked": dbus.Boolean(locked), "Label": "Scripted", "Items": dbus.Array([dbus.ObjectPath(ITEM)], signature="o")}


    @dbus.service.method(SECRET + "Collection", in_signature="a{sv}(oayays)b", out_signature="oo", byte_arrays=True)
    def CreateItem(self, properties, secret, replace):
        note("CreateItem")
        Item.value = secret[2]
        return dbus.ObjectPath(ITEM), dbus.ObjectPath("/")


class Item(Base):
    value = dbus.ByteArray(b"s3cret")

    def __init__(self, bus, path, name):
        super().__init__(bus, path)
        items[dbus.ObjectPath(path)] = self
        self.attributes = {"service": "svc", "username": name}

    def properties(self, interface):
        attributes = dbus.Dictionary(self.attributes, signature="ss")
        return {"Attributes": attributes, "Label": "l", "Locked": dbus.Boolean(locked), "Created": dbus.UInt64(1), "Modified": dbus.UInt64(1)}

    @dbus.service.method(SECRET + "Item", in_signature="o", out_signature="(oayays)", byte_arrays=True)
    def GetSecret(self, session):
        if locked:
            raise dbus.DBusException("locked", name="org.freedesktop.Secret.Error.IsLocked")
        if mode == "broken-sessions":
            time.sleep(1)
        if mode == "broken-sessions" or mode == "bad-session" and sessions == 1:
            raise dbus.DBusException("the key does not fit", name="org.freedesktop.DBus.Error.Failed")
        return dbus.Struct((session, dbus.ByteArray(b""), Item.value, "text/plain"), signature="oayays")

    @dbus.service.method(SECRET + "Item", in_signature="(oayays)", byte_arrays=True)
    def SetSecret(self, secret):
        note("SetSecret")
        Item.value = secret[2]

    @dbus.service.method(SECRET + "Item", out_signature="o")
    def Delete(self):
        note("Delete")
        return dbus.ObjectPath("/")


class Prompt(dbus.service.Object):
    @dbus.service.signal(SECRET + "Prompt", signature="bv")
    def Completed(self, dismissed, result):
        pass

    def complete(self, dismissed):
        global locked
        locked = dismissed or mode == "useless"
        paths = [] if dismissed else [dbus.ObjectPath(ITEM)]
        self.Completed(dismissed, dbus.Array(paths, signature="o", variant_level=1))
        return False

    @dbus.service.method(SECRET + "Prompt", in_signature="s")
    def Prompt(self, window):
        note("Prompt")
        if mode == "dismiss":
            GLib.idle_add(self.complete, True)
        elif mode == "useless":
            GLib.idle_add(self.complete, False)
        elif mode == "answer":
            GLib.timeout_add(int(float(sys.argv[3]) * 1000), self.complete, False)

    @dbus.service.method(SECRET + "Prompt")
    def Dismiss(self):
        note("Dismiss")
        self.complete(True)


# Each hostile service: for the names of methods, the signature and the values of an answer, or the name of an error.
HUGE = [f"{COLLECTION}/{number}" for number in range(200_000)]
HOSTILE = {
    "search-strings": {"SearchItems": ("asas", ["no path", ""], [])},
    "search-numbers": {"SearchItems": ("ii", 1, 2)},
    "search-nothing": {"SearchItems": ("",)},
    "search-one": {"SearchItems": ("ao", [ITEM])},
    "search-huge": {"SearchItems": ("aoao", HUGE, [])},
    "search-foreign": {"SearchItems": ("aoao", ["/", "/org/freedesktop/DBus"], [])},
    "strings-for-paths": {
        "SearchItems": ("aoao", [], [ITEM]),
        "ReadAlias": ("s", "no path"), "Unlock": ("ass", ["no path"], "no path"), "Delete": ("s", "no path"),
        "CreateItem": ("ss", "no path", "no path"),
    },
    "nothing-for-paths": {"ReadAlias": ("",), "Unlock": ("",), "Delete": ("",), "CreateItem": ("",)},
    "properties-numbers": {"Get": ("v", 1), "GetAll": ("a{sv}", {"Attributes": 1, "Label": 2, "Modified": "3"})},
    "properties-nothing": {"Get": ("",), "GetAll": ("a{sv}", {})},
    "session-plain": {"OpenSession": ("vo", dbus.String("", variant_level=1), ROOT + "/session/s1")},
    "session-string": {"OpenSession": ("vs", dbus.String("", variant_level=1), "no path")},
    "session-numbers": {"OpenSession": ("ii", 1, 2)},
    "session-nothing": {"OpenSession": ("",)},
    "session-no-path": {"OpenSession": ("vo", dbus.ByteArray(b"k" * 128, variant_level=1), "/")},
    "session-long-key": {"OpenSession": ("vo", dbus.ByteArray(b"k" * 100_000, variant_level=1), ROOT + "/session/s1")},
    "session-no-key": {"OpenSession": ("vo", dbus.ByteArray(b"", variant_level=1), ROOT + "/session/s1")},
    "session-other-key": {"OpenSession": ("vo", dbus.ByteArray(b"k" * 128, variant_level=1), ROOT + "/session/s1")},
    "secret-short": {"GetSecret": ("(oay)", (ROOT + "/session/s1", dbus.ByteArray(b"")))},
    "secret-string": {"GetSecret": ("s", "s3cret")},
    "secret-other-session": {"GetSecret": ("(oayays)", (ITEM, dbus.ByteArray(b""), dbus.ByteArray(b"x"), "text/plain"))},
    "secret-locked": {"GetSecret": "org.freedesktop.Secret.Error.IsLocked"},
    "secret-no-session": {"GetSecret": "org.freedesktop.Secret.Error.NoSession"},
    "secret-huge": {
        "GetSecret": ("(oayays)", (ROOT + "/session/s1", dbus.ByteArray(b""), dbus.ByteArray(b"x" * 50_000_000), ""))
    },
    "item-vanishes": {
        name: "org.freedesktop.Secret.Error.NoSuchObject"
        for name in ("GetSecret", "Get", "GetAll", "Set", "SetSecret", "Delete", "CreateItem")
    },
    "errors": {
        name: "org.example.Error.Strange"
        for name in ("GetSecret", "Get", "GetAll", "Set", "SetSecret", "Delete", "CreateItem", "SearchItems")
    },
    "ends": {"GetSecret": None, "GetAll": None, "Delete": None, "CreateItem": None},
}  # fmt: skip


def hostile(connection, message):
    """Answers a call as the hostile service does."""
    answers = HOSTILE[sys.argv[3]]
    member = message.get_member()
    if message.get_type() != dbus.lowlevel.MESSAGE_TYPE_METHOD_CALL or member not in answers:
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    answer = answers[member]
    if answer is None:
        os._exit(0)
    if isinstance(answer, str):
        connection.send_message(dbus.lowlevel.ErrorMessage(message, answer, "a reason"))
    else:
        reply = dbus.lowlevel.MethodReturnMessage(message)
        if answer[0]:
            reply.append(*answer[1:], signature=answer[0])
        connection.send_message(reply)
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


def counted(connection, message):
    """Logs a call, and leaves the answer to the methods."""
    if message.get_type() == dbus.lowlevel.MESSAGE_TYPE_METHOD_CALL and message.get_path().startswith(ROOT):
        name = message.get_member()
        note(f"{name} {message.get_args_list()[1]}" if name == "Get" else name, counts=True)
    return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED


def slow(connection, message):
    """Waits before a call is answered."""
    if message.get_type() == dbus.lowlevel.MESSAGE_TYPE_METHOD_CALL and message.get_path().startswith(ROOT):
        time.sleep(float(sys.argv[4]))
    return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
if mode == "doubled":
    pathlib.Path("/proc/self/comm").write_text("gnome-keyring-d")
if mode in ("counted", "doubled"):
    bus.add_message_filter(counted)
if mode == "slow":
    bus.add_message_filter(slow)
if mode == "hostile":
    bus.add_message_filter(hostile)
if mode == "silent":
    name = dbus.service.BusName("org.freedesktop.secrets", bus)
    signal.pause()
open(log, "a").close()
objects = [Service(bus, ROOT), Collection(bus, COLLECTION), Prompt(bus, PROMPT)]
if mode in ("counted", "doubled", "slow"):
    numbers = range(1, int(sys.argv[3]) + 1)
    each = 2 if mode == "doubled" else 1
    objects += [Item(bus, f"{COLLECTION}/{number}", f"name {(number + each - 1) // each}") for number in numbers]
else:
    objects.append(Item(bus, ITEM, "alice"))
name = dbus.service.BusName("org.freedesktop.secrets", bus)
loop = GLib.MainLoop()
loop.run()
