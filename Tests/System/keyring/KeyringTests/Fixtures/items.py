"""Creates and lists items of the Secret Service with secretstorage.

Usage: items.py create LABEL VALUE NAME=TEXT... | list | lock | unlock PASSWORD

create    creates an item with these attributes, also if there is one with the same attributes
list      prints all items of the default collection as JSON: label, value and attributes
lock      locks the default collection, as the lock screen does
unlock    unlocks gnome-keyring's default collection without a prompt, as the login does
"""

import json
import sys

import patient_keyring  # noqa: F401, gives the library below more time
import secretstorage

connection = secretstorage.dbus_init()
collection = secretstorage.get_default_collection(connection)
if sys.argv[1] == "create":
    attributes = dict(argument.split("=", 1) for argument in sys.argv[4:])
    collection.create_item(sys.argv[2], attributes, sys.argv[3].encode(), replace=False)
elif sys.argv[1] == "lock":
    collection.lock()
elif sys.argv[1] == "unlock":
    import dbus

    service = dbus.SessionBus().get_object("org.freedesktop.secrets", "/org/freedesktop/secrets")
    _, session = service.OpenSession("plain", "", dbus_interface="org.freedesktop.Secret.Service")
    secret = dbus.Struct((session, dbus.ByteArray(b""), dbus.ByteArray(sys.argv[2].encode()), "text/plain"))
    path = dbus.ObjectPath(collection.collection_path)
    interface = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface"
    service.UnlockWithMasterPassword(path, secret, dbus_interface=interface)
else:
    items = [
        {"label": item.get_label(), "value": item.get_secret().decode(), "attributes": item.get_attributes()}
        for item in collection.get_all_items()
    ]
    print(json.dumps(items))
