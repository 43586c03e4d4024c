"""A Secret portal that follows a script, with one secret.

Usage: scripted_portal.py LOG SECRET MODE

SECRET  the secret, as hexadecimal digits
MODE    answer: sends the secret and a token
        early: the same, and the response comes before the answer to the call
        other-path: the same, for a request whose path is not the one that the caller expects
        twice: the same, and the response comes twice
        refuse: the user dismisses the prompt
        empty: responds without a secret
        silent: never responds
        open: sends the secret and never closes the pipe

Appends the token of each call to LOG, or “no token”.
"""

import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.lowlevel
from gi.repository import GLib

log, secret, mode = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
ROOT = "/org/freedesktop/portal/desktop"
kept = []


def handle(connection, message):
    if message.get_type() != dbus.lowlevel.MESSAGE_TYPE_METHOD_CALL or message.get_path() != ROOT:
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    reply = dbus.lowlevel.MethodReturnMessage(message)
    if message.get_member() == "Get":
        reply.append(dbus.UInt32(1), signature="v")
        connection.send_message(reply)
    elif message.get_member() == "RetrieveSecret":
        retrieve(connection, message, reply)
    else:
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


def retrieve(connection, message, reply):
    descriptor, options = message.get_args_list()
    with open(log, "a") as file:
        file.write(str(options.get("token", "no token")) + "\n")
    sender = message.get_sender()[1:].replace(".", "_")
    path = f"{ROOT}/request/{sender}/{options['handle_token']}" + ("x" if mode == "other-path" else "")
    reply.append(dbus.ObjectPath(path), signature="o")
    responses = []
    for _ in range(2 if mode == "twice" else 1):
        response = dbus.lowlevel.SignalMessage(path, "org.freedesktop.portal.Request", "Response")
        response.append(dbus.UInt32(1 if mode == "refuse" else 0), {"token": "a token"}, signature="ua{sv}")
        responses.append(response)
    pipe = descriptor.take()
    if mode in ("silent", "open"):
        kept.append(pipe)
    if mode not in ("refuse", "empty", "silent"):
        os.write(pipe, secret)
    if not kept:
        os.close(pipe)
    if mode == "early":
        send(connection, responses)
    connection.send_message(reply)
    if mode not in ("early", "silent"):
        GLib.timeout_add(50, send, connection, responses)


def send(connection, messages):
    for message in messages:
        connection.send_message(message)
    return False


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
bus.add_message_filter(handle)
bus.request_name("org.freedesktop.portal.Desktop")
GLib.MainLoop().run()
