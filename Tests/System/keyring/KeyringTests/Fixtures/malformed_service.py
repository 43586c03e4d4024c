"""A Secret Service that sends one answer with a wrong type. Everything else is as it must be.

Usage: malformed_service.py [locked | empty | gnome] ANSWER SIGNATURE

ANSWER is the name of a method, `Get.NAME` or `GetAll.NAME` for the content of a property, or `Completed` for the signal
of a prompt. SIGNATURE is the type that is sent instead, as one string of D-Bus; empty for no value. `Get.NAME` with
`gone` or `failed` in place of a type is the error that the item does not exist, or another one. `SearchItems many` finds
50,001 items. The service has one item, "s3cret" for svc/alice, unless `empty`. If `locked`, each call needs a prompt, which
is completed at once. If `gnome`, the process has the name of gnome-keyring.
"""

import pathlib
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

words = sys.argv[1:]
state = words.pop(0) if words[0] in ("locked", "empty", "gnome") else ""
if state == "gnome":
    pathlib.Path("/proc/self/comm").write_text("gnome-keyring-d")
wrong_answer, wrong_signature = words
ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/only"
ITEM = COLLECTION + "/1"
PROMPT = ROOT + "/prompt/p1"
SESSION = ROOT + "/session/s1"
SECRET = (SESSION, dbus.ByteArray(b""), dbus.ByteArray(b"s3cret"), "text/plain")
ERRORS = {"gone": "org.freedesktop.Secret.Error.NoSuchObject", "failed": "org.freedesktop.DBus.Error.Failed"}
ATTRIBUTES = {"service": "svc", "username": "alice"}
# A value of each type that is sent in the place of another one.
SAMPLES = {
    "": [], "s": ["/text"], "o": ["/org"], "b": [True], "u": [7], "x": [-1], "as": [["/text"]], "ao": [[ITEM]],
    "asas": [["/text"], ["/text"]], "aoas": [[ITEM], ["/text"]], "oo": ["/org", "/org"], "ss": ["/", "/"],
    "os": ["/org", "/"], "so": ["/text", "/"], "ou": ["/org", 7], "aos": [[], "/"], "asu": [["/text"], 7],
    "(oayays)": [SECRET], "oayays": list(SECRET), "(oayay)": [SECRET[:3]], "(sayays)": [SECRET],
    "(oayayay)": [(*SECRET[:3], dbus.ByteArray(b"t"))], "(oayss)": [(SESSION, dbus.ByteArray(b""), "s3cret", "t")],
    "(oaxays)": [(SESSION, [1], *SECRET[2:])], "a{ss}": [ATTRIBUTES], "a{sv}": [{"a": True}],
    "a{si}": [{"service": 1}], "a{is}": [{1: "svc"}], "a{sas}": [{"service": ["svc"]}], "bs": [False, "x"],
    "sv": ["no", True], "b": [False], "many": [[f"{COLLECTION}/{number}" for number in range(50_001)], []],
}
is_locked = state == "locked"


def properties():
    return {
        "Locked": ("b", is_locked), "Label": ("s", "only"), "Items": ("ao", [] if state == "empty" else [ITEM]),
        "Collections": ("ao", [COLLECTION]), "Attributes": ("a{ss}", ATTRIBUTES), "Created": ("t", 1), "Modified": ("t", 1),
    }


def variant(name):
    signature, value = properties()[name]
    if wrong_answer in (f"Get.{name}", f"GetAll.{name}") and wrong_signature not in ERRORS:
        signature, value = wrong_signature, SAMPLES[wrong_signature][0]
    types = {"b": dbus.Boolean, "s": dbus.String, "t": dbus.UInt64, "x": dbus.Int64, "u": dbus.UInt32, "o": dbus.ObjectPath}
    if signature in types:
        return types[signature](value, variant_level=1)
    if signature.startswith("a{"):
        return dbus.Dictionary(value, signature=signature[2:-1], variant_level=1)
    return dbus.Array(value, signature=signature[1:], variant_level=1)


def answer(member, interface, arguments):
    """Returns the signature and the values of the right answer."""
    found = [] if state == "empty" else [ITEM]
    prompt = PROMPT if is_locked else "/"
    if member == "SearchItems":
        if interface.endswith("Collection"):
            return "ao", [found]
        return "aoao", [[], found] if is_locked else [found, []]
    if member == "Get":
        return "v", [variant(arguments[1])]
    if member == "GetAll":
        return "a{sv}", [{name: variant(name) for name in properties()}]
    return {
        "OpenSession": ("vo", [dbus.String("", variant_level=1), SESSION]),
        "ReadAlias": ("o", [COLLECTION if arguments == ["default"] else "/"]),
        "Unlock": ("aoo", [[] if is_locked else arguments and arguments[0] or [], prompt]),
        "GetSecret": ("(oayays)", [SECRET]), "GetSecrets": ("a{o(oayays)}", [{ITEM: SECRET}]),
        "CreateItem": ("oo", [ITEM, "/"]), "CreateCollection": ("oo", [COLLECTION, "/"]), "Delete": ("o", ["/"]),
    }.get(member, ("", []))


def complete(connection):
    global is_locked
    is_locked = False
    signal = dbus.lowlevel.SignalMessage(PROMPT, "org.freedesktop.Secret.Prompt", "Completed")
    if wrong_answer == "Completed":
        signal.append(*SAMPLES[wrong_signature], signature=wrong_signature)
    else:
        signal.append(False, dbus.Array([ITEM], signature="o", variant_level=1), signature="bv")
    connection.send_message(signal)
    return False


def handle(connection, message):
    if not isinstance(message, dbus.lowlevel.MethodCallMessage) or not message.get_path().startswith(ROOT):
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    member, arguments = message.get_member(), message.get_args_list()
    if member == "OpenSession" and arguments[0] != "plain":
        reply = dbus.lowlevel.ErrorMessage(message, "org.freedesktop.DBus.Error.NotSupported", "no")
    elif member == "Get" and wrong_answer == f"Get.{arguments[1]}" and wrong_signature in ERRORS:
        reply = dbus.lowlevel.ErrorMessage(message, ERRORS[wrong_signature], "no")
    else:
        signature, values = answer(member, message.get_interface() or "", arguments)
        names = {member, f"{member}!"} if member not in ("Get", "GetAll") else {f"{member}!"}
        if member == "SearchItems":
            names.add("SearchItems." + (message.get_interface() or "").rsplit(".", 1)[-1])
        if wrong_answer in names:
            signature = "aoao" if wrong_signature == "many" else wrong_signature
            values = SAMPLES[wrong_signature]
        reply = dbus.lowlevel.MethodReturnMessage(message)
        if signature:
            reply.append(*values, signature=signature)
    connection.send_message(reply)
    if member == "Prompt":
        GLib.idle_add(complete, connection)
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
bus.add_message_filter(handle)
bus.request_name("org.freedesktop.secrets")
GLib.MainLoop().run()
