"""Creates and lists items of the Secret Service with secretstorage.

Usage: items.py create LABEL VALUE NAME=TEXT... | list

create    creates an item with these attributes, also if there is one with the same attributes
list      prints all items of the default collection as JSON: label, value and attributes
"""

import json
import sys

import secretstorage

connection = secretstorage.dbus_init()
collection = secretstorage.get_default_collection(connection)
if sys.argv[1] == "create":
    attributes = dict(argument.split("=", 1) for argument in sys.argv[4:])
    collection.create_item(sys.argv[2], attributes, sys.argv[3].encode(), replace=False)
else:
    items = [
        {"label": item.get_label(), "value": item.get_secret().decode(), "attributes": item.get_attributes()}
        for item in collection.get_all_items()
    ]
    print(json.dumps(items))
