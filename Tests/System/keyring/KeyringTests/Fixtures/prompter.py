"""Stands for the program that shows gnome-keyring's prompts.

Usage: prompter.py LOG

Appends a line to LOG for each prompt that it is asked to show, and never answers.
"""

import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

INTERFACE = "org.gnome.keyring.internal.Prompter"


class Prompter(dbus.service.Object):
    @dbus.service.method(INTERFACE, in_signature="o")
    def BeginPrompting(self, callback):
        with open(sys.argv[1], "a") as file:
            file.write("Prompt\n")

    @dbus.service.method(INTERFACE, in_signature="o")
    def StopPrompting(self, callback):
        pass


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
open(sys.argv[1], "a").close()
prompter = Prompter(bus, "/org/gnome/keyring/Prompter")
name = dbus.service.BusName("org.gnome.keyring.SystemPrompter", bus)
GLib.MainLoop().run()
