"""The providers of the Secret Service that the tests run, each on a private bus with files of its own."""

import os
import shutil
import socket
import subprocess
import sys

from private_session import FIXTURES, Session

PASSWORD = "a password"


class Provider(Session):
    """A provider that keeps its secrets in a file, encrypted with a password."""

    name = ""
    #: The programs it needs, and the Debian package of each.
    programs = {}
    #: Whether a collection can be locked.
    locks = True
    #: The column of the table, if it is not that of the name, and the outcomes that differ from it.
    column = None
    differences = {}

    @classmethod
    def missing(cls):
        """The Debian packages that are not installed."""
        needed = {"dbus-daemon": "dbus", "dbus-send": "dbus", "secret-tool": "libsecret-tools", **cls.programs}
        return sorted({package for program, package in needed.items() if not shutil.which(program)})

    def __init__(self, directory):
        super().__init__(directory)
        for name in ("config", "cache"):
            os.makedirs(f"{directory}/{name}", mode=0o700, exist_ok=True)
        self.environment |= {"XDG_CONFIG_HOME": f"{directory}/config", "XDG_CACHE_HOME": f"{directory}/cache",
                             "LC_ALL": "C.UTF-8"}
        self.prepare()

    def prepare(self):
        """Makes the files of the provider."""

    def open(self):
        """Starts the provider, unlocked."""
        raise NotImplementedError

    def spawn(self, *command, given=b""):
        """Starts the process of the provider with `given` on its standard input."""
        self.daemon = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.daemon.stdin.write(given)
        self.daemon.stdin.close()

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.directory}/{name}"), exist_ok=True)
        with open(f"{self.directory}/{name}", "w") as file:
            file.write(text)

    def call(self, destination, path, method, *arguments):
        """Makes a D-Bus call. Returns the answer as dbus-send prints it, or nothing after an error."""
        command = ["dbus-send", "--session", "--print-reply", f"--dest={destination}", path, method, *arguments]
        return self.run(*command).stdout.decode()

    def default_collection(self):
        answer = self.call("org.freedesktop.secrets", "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.ReadAlias",
                           "string:default")
        return answer.split('"')[1] if '"' in answer else "/"

    def is_locked(self):
        answer = self.call("org.freedesktop.secrets", self.default_collection(), "org.freedesktop.DBus.Properties.Get",
                           "string:org.freedesktop.Secret.Collection", "string:Locked")
        return "boolean false" not in answer

    def open_collection(self):
        """Waits until the provider runs with an unlocked default collection."""
        self.wait(lambda: self.has_service() and not self.is_locked(), self.name)

    def lock(self):
        """Locks the default collection."""
        self.call("org.freedesktop.secrets", "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock",
                  f"array:objpath:{self.default_collection()}")
        self.wait(self.is_locked, "the lock of " + self.name)


class GnomeKeyring(Provider):
    name = "gnome-keyring, encrypted"
    programs = {"gnome-keyring-daemon": "gnome-keyring"}

    def open(self):
        self.start(PASSWORD)
        self.open_collection()


class PasswordlessGnomeKeyring(Provider):
    name = "gnome-keyring without a password"
    programs = GnomeKeyring.programs
    locks = False

    def prepare(self):
        self.write("data/keyrings/Default.keyring",
                   "[keyring]\ndisplay-name=Default\nctime=0\nmtime=0\nlock-on-idle=false\nlock-after=false\n")
        self.write("data/keyrings/default", "Default")

    def open(self):
        self.start()


class KeePassXC(Provider):
    name = "KeePassXC"
    programs = {"keepassxc": "keepassxc", "keepassxc-cli": "keepassxc"}
    # Without a question for each client and each deletion, which a person would have to answer.
    SETTINGS = """[General]
ConfigVersion=2
SingleInstance=false
AutoSaveAfterEveryChange=true
UpdateCheckMessageShown=true
[GUI]
CheckForUpdates=false
[FdoSecrets]
Enabled=true
ShowNotification=false
ConfirmDeleteItem=false
ConfirmAccessItem=false
"""
    # The database exposes its root group. keepassxc-cli cannot say so, but imports it.
    DATABASE = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<KeePassFile><Meta><DatabaseName>Test</DatabaseName><RecycleBinEnabled>False</RecycleBinEnabled><CustomData><Item>
<Key>FDO_SECRETS_EXPOSED_GROUP</Key><Value>{11111111-1111-4111-8111-111111111111}</Value></Item></CustomData></Meta>
<Root><Group><UUID>ERERERERQRGBEREREREREQ==</UUID><Name>Root</Name></Group></Root></KeePassFile>
"""

    def prepare(self):
        self.environment["QT_QPA_PLATFORM"] = "offscreen"
        self.write("config/keepassxc/keepassxc.ini", self.SETTINGS)
        self.write("database.xml", self.DATABASE)
        self.database = f"{self.directory}/database.kdbx"
        result = self.run("keepassxc-cli", "import", "-p", "-t", "100", f"{self.directory}/database.xml", self.database,
                          given=f"{PASSWORD}\n{PASSWORD}\n".encode())
        if result.returncode != 0:
            sys.exit(f"keepassxc-cli could not make a database: {result}")

    def open(self):
        self.spawn("keepassxc", "--pw-stdin", self.database, given=PASSWORD.encode() + b"\n")
        self.open_collection()

    def lock(self):
        self.call("org.keepassxc.KeePassXC.MainWindow", "/keepassxc", "org.keepassxc.KeePassXC.MainWindow.lockAllDatabases")
        self.wait(self.is_locked, "the lock of " + self.name)


class KWallet(Provider):
    name = "KWallet"
    programs = {"kwalletd5": "libkf5wallet-bin"}
    # QCA, with which kwalletd5 makes the keys of sessions, finds its plugin here.
    PLUGIN = "/usr/lib/{}/qca-qt5/crypto/libqca-ossl.so"
    SETTINGS = """[Wallet]
First Use=false
Prompt on Open=false
Leave Open=true
Default Wallet=kdewallet
"""

    @classmethod
    def missing(cls):
        plugins = [cls.PLUGIN.format(name) for name in os.listdir("/usr/lib")]
        return super().missing() + ([] if any(map(os.path.exists, plugins)) else ["libqca-qt5-2-plugins"])

    def prepare(self):
        self.environment["QT_QPA_PLATFORM"] = "offscreen"
        self.write("config/kwalletrc", self.SETTINGS)
        # A daemon does not offer to other programs the wallet that it has created itself.
        self.log_in()
        self.wait(lambda: os.path.exists(f"{self.directory}/data/kwalletd/kdewallet.kwl"), "the first kwalletd5")
        self.stop()

    def log_in(self):
        """Starts the daemon and opens the wallet as the module of PAM does: with the hash of a password, 56 bytes."""
        path = f"{self.directory}/pam"
        if os.path.exists(path):
            os.unlink(path)
        reader, writer = os.pipe()
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind(path)
            listener.listen(1)
            self.daemon = subprocess.Popen(
                ["kwalletd5", "--pam-login", str(reader), str(listener.fileno())],
                env={**self.environment, "PAM_KWALLET5_LOGIN": path}, pass_fds=[reader, listener.fileno()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.close(reader)
            os.write(writer, (PASSWORD.encode() * 56)[:56])
            os.close(writer)
            client.connect(path)
            client.send(b"LC_ALL=C.UTF-8\n")
        self.wait(self.has_service, self.name)

    def is_open(self):
        answer = self.call("org.kde.kwalletd5", "/modules/kwalletd5", "org.kde.KWallet.isOpen", "string:kdewallet")
        return "boolean true" in answer

    def open(self):
        self.log_in()
        self.wait(self.is_open, self.name)

    def lock(self):
        self.call("org.kde.kwalletd5", "/modules/kwalletd5", "org.kde.KWallet.close", "string:kdewallet", "boolean:true")
        self.wait(lambda: not self.is_open(), "the lock of " + self.name)


class Scripted(Provider):
    """The behaviour of oo7-daemon, which Debian does not have, and sessions as KWallet's that sometimes fail."""

    name = "scripted, as oo7 0.6"
    deviations = ["memory-only-updates", "hidden-when-locked", "first-session-broken"]

    def open(self):
        script = f"{FIXTURES}/scripted_keyring.py"
        self.spawn("/usr/bin/python3", script, f"{self.directory}/items.json", *self.deviations)
        self.wait(self.has_service, self.name)


class ScriptedKeePassXC(Scripted):
    """For machines without KeePassXC. It writes each change before its answer."""

    name = "scripted, as KeePassXC"
    column = KeePassXC.name
    deviations = ["keepassxc"]
    differences = {"an update survives a kill of the provider at once": "yes",
                   "a kill at once after any write leaves the old state or the new one": "yes"}


class ScriptedKWallet(Scripted):
    """For machines without KWallet. It writes each change before its answer."""

    name = "scripted, as KWallet"
    column = KWallet.name
    deviations = ["kwalletd5", "first-session-broken"]
    differences = ScriptedKeePassXC.differences
