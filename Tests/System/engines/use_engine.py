#!/usr/bin/env python3
"""Uses a vault on a real engine as a person would, and as an engine that lies, fails or is not there would have it.

usage: use_engine.py SECRET ENGINE [STEPS]

SECRET is the built tool; CofferProbe and the helpers must be beside it (Scripts/helpers). ENGINE is postgresql, ceph or
ceph-next. With STEPS, the built tests of the package run on the engine too: the conformance suite, and three times as many
random changes as STEPS, which a file gets as well. And processes that refresh a token are killed (Examples/run --refresh).

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import servers

TIMEOUT = 120
VALUE = "a-value-4c1d9e7a"
failures = []


def check(name, holds, found=""):
    print(f"{'ok    ' if holds else 'FAILED'} {name}{'' if holds else f': {found}'}", flush=True)
    if not holds:
        failures.append(name)


class Machine:
    """A home directory and the variables of one machine."""

    def __init__(self, tool, directory, name, variables):
        self.tool = tool
        self.home = f"{directory}/{name}"
        os.mkdir(self.home)
        self.variables = {"PATH": os.environ["PATH"], "HOME": self.home, "COFFER_KEY_FILE": f"{directory}/key",
                          "AWS_EC2_METADATA_DISABLED": "true", **variables}

    def run(self, *arguments, given="", program=(), **variables):
        environment = {name: value for name, value in {**self.variables, **variables}.items() if value is not None}
        result = subprocess.run([*program, self.tool, *arguments], env=environment, input=given, text=True,
                                capture_output=True, timeout=TIMEOUT)
        return result.returncode, result.stdout, result.stderr


class PostgreSQLObject:
    """The object of a vault in PostgreSQL, seen from below."""

    def __init__(self, directory):
        self.server = servers.PostgreSQL(f"{directory}/server")
        self.environment = self.server.environment
        self.url = self.server.url("used")
        self.elsewhere = [
            ("a wrong password", {"PGPASSWORD": "wrong"}, self.url, 77),
            ("no such user", {"PGUSER": "nobody"}, self.url, 77),
            ("no such database", {}, self.url.replace("/postgres/", "/nowhere/"), 78),
            ("nobody at the port", {}, self.url.replace(str(self.server.port), str(servers.free_port())), 69),
            ("no such host", {}, "postgresql://coffer.invalid/postgres/used", 69),
            ("no certificate", {}, f"postgresql://{os.uname().nodename}:{self.server.port}/postgres/used", None),
            ("a malformed path", {}, f"postgresql://127.0.0.1:{self.server.port}/used", 78),
        ]

    def dump(self):
        return self.server.sql("SELECT json_agg(v) FROM coffer.vault v WHERE name = 'used'"), self.server.sql(
            "SELECT coalesce(json_agg(c), '[]') FROM coffer.change c WHERE vault = 'used'")

    def restore(self, dumped):
        vault, changes = dumped
        self.server.sql(
            "DELETE FROM coffer.vault WHERE name = 'used'", "DELETE FROM coffer.change WHERE vault = 'used'",
            f"INSERT INTO coffer.vault SELECT * FROM json_populate_recordset(NULL::coffer.vault, '{vault}')",
            f"INSERT INTO coffer.change SELECT * FROM json_populate_recordset(NULL::coffer.change, '{changes}')")

    def put(self, data):
        with open(f"{self.server.directory}/object", "wb") as file:
            file.write(data)
        os.chmod(f"{self.server.directory}/object", 0o644)
        self.server.sql(
            "UPDATE coffer.vault SET last = last + 1, base = last + 1, id = md5(random()::text), base_id = id, "
            f"bytes = pg_read_binary_file('{self.server.directory}/object') WHERE name = 'used'",
            "UPDATE coffer.vault SET base_id = id WHERE name = 'used'")

    def pages(self):
        """The number of changes that are only a page of leases."""
        return int(self.server.sql("SELECT count(*) FROM coffer.change WHERE vault = 'used' AND data = ''"))

    def away(self):
        self.server.stop()

    def back(self):
        self.server.start()


class CephObject:
    """The object of a vault in Ceph's object store, seen from below."""

    Server = servers.Ceph

    def __init__(self, directory):
        self.server = self.Server(f"{directory}/server")
        self.environment = self.server.environment
        self.url = self.server.url("used")
        self.path = f"/{self.server.BUCKET}/used"
        port = str(self.server.port)
        self.elsewhere = [
            ("a wrong secret key", {"AWS_SECRET_ACCESS_KEY": "wrong"}, self.url, 77),
            ("an unknown access key", {"AWS_ACCESS_KEY_ID": "nobody"}, self.url, 77),
            ("no credentials", {"AWS_ACCESS_KEY_ID": None}, self.url, 77),
            ("no such bucket", {}, self.url.replace("/vaults/", "/nowhere/"), 78),
            ("nobody at the port", {}, self.url.replace(port, str(servers.free_port())), 69),
            ("no such host", {}, "s3+https://coffer.invalid/vaults/used", 69),
            ("a server without TLS", {}, self.url.replace("s3+http", "s3+https"), 77),
            ("no TLS to another machine", {}, "s3+http://192.0.2.1/vaults/used", 78),
            ("an endpoint in a variable", {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, self.url, 0),
        ]

    def dump(self):
        return self.server.request("GET", self.path)[2]

    def restore(self, data):
        self.server.request("PUT", self.path, data)

    put = restore

    def pages(self):
        return 0

    def away(self):
        self.server.kill("rgw")

    def back(self):
        self.server.start("rgw")
        self.server.wait(lambda: self.server.request("GET", self.path)[0] == 200)


class NextCephObject(CephObject):
    Server = servers.NextCeph


OBJECTS = {"postgresql": PostgreSQLObject, "ceph": CephObject, "ceph-next": NextCephObject}


def use(tool, directory, engine):
    first = Machine(tool, directory, "first", engine.environment)
    url = engine.url

    def secret(*arguments, machine=first, at=url, **others):
        return machine.run(*arguments, COFFER_BACKEND=f"vault:{at}", **others)

    def succeeds(name, *arguments, output=None, **others):
        result = secret(*arguments, **others)
        check(name, result[0] == 0 and (output is None or result[1] == output), result)
        return result[1]

    result = secret("get", "token")
    check("before init there is no vault", result[0] == 66, result)
    result = first.run("init", "--vault", url, "--key-file", f"{directory}/key", COFFER_KEY_FILE=None)
    check("init makes the vault", result[0] == 0, result)
    before = engine.dump()
    result = first.run("init", "--vault", url)
    check("init does not replace it", result[0] == 73 and engine.dump() == before, result)
    result = first.run("init", "--backend", f"vault:{url}", COFFER_KEY_FILE=f"{directory}/key")
    check("init chooses it as the backend", result[0] == 0, result)
    check("the choice counts", first.run("list")[0] == 0, first.run("list"))
    succeeds("set", "set", "token", given="first")
    succeeds("set again", "set", "token", given="second")
    succeeds("get", "get", "token", output="second")
    succeeds("restore", "restore", "token")
    succeeds("get the restored", "get", "token", output="first")
    succeeds("move", "move", "token", "moved")
    result = secret("get", "token")
    check("a secret that is not there", result[0] == 1, result)
    succeeds("remove", "remove", "moved")
    succeeds("restore the removed", "restore", "moved")
    succeeds("run", "run", "--set", "TOKEN=moved", "--", "sh", "-c", "printf %s \"$TOKEN\"", output="first")
    succeeds("add a key slot", "key", "add", "--key-file", f"{directory}/other-key")
    succeeds("verify", "verify")
    succeeds("doctor", "doctor")
    file = f"{directory}/file.vault"
    check("make a file beside it", first.run("init", "--vault", file)[0] == 0)
    succeeds("copy to a file", "copy", "--from", f"vault:{url}", "--to", f"vault:{file}")
    succeeds("the copy has it", "get", "moved", output="first", at=file)
    succeeds("remote check", "remote", "check", url)

    # Another machine.
    second = Machine(tool, directory, "second", engine.environment)
    result = secret("get", "moved", machine=second)
    check("the first use of a machine is refused", result[0] == 77 and "not used on this machine" in result[2], result)
    pin = re.search(r"^pin: (\S+)", succeeds("print the pin", "verify"), re.M).group(1)
    succeeds("a pin admits it for a job", "get", "moved", machine=Machine(tool, directory, "job", engine.environment),
             output="first", COFFER_PIN=pin)
    result = secret("trust", "--pin", pin, machine=second)
    check("trust admits it", result[0] == 0, result)
    succeeds("and then it is used", "get", "moved", machine=second, output="first")
    succeeds("a change there", "set", "moved", machine=second, given="third")
    succeeds("is seen here", "get", "moved", output="third")

    # The engine lies.
    older = engine.dump()
    succeeds("a later change", "set", "moved", given=VALUE)
    succeeds("both have seen it", "get", "moved", machine=second, output=VALUE)
    newer = engine.dump()
    engine.restore(older)
    for machine in (first, second):
        result = secret("get", "moved", machine=machine)
        check("an older state is refused", result[0] == 65, result)
    engine.restore(newer)
    succeeds("the newer is not", "get", "moved", output=VALUE)
    with open(file, "rb") as source:
        other = source.read()
    for name, data in (("another vault", other), ("a cut object", other[:5000]), ("9 MiB", bytes(9 << 20)), ("nothing", b"")):
        engine.put(data)
        result = secret("get", "moved")
        check(f"{name} is refused", result[0] in (64, 65, 69), result)
    engine.restore(newer)
    succeeds("and the vault is as it was", "get", "moved", output=VALUE)

    # The engine is not there, or refuses.
    for name, variables, at, status in engine.elsewhere:
        result = secret("get", "moved", at=at, COFFER_PIN=pin, **variables)
        check(f"{name} has its status", result[0] == status if status is not None else result[0] != 0, result)
        if status:
            check(f"{name} has its sentence", result[2].count("\n") == 1 and len(result[2]) > 40, result)
            print(f"       {result[2].strip()}")
    if isinstance(engine, CephObject):
        result = secret("get", "moved", program=("faketime", "+20 minutes"))
        check("a clock that is 20 minutes off", result[0] == 77 and "clock" in result[2], result)
    engine.away()
    result = secret("get", "moved")
    check("an engine that is away is unreachable", result[0] == 69, result)
    result = secret("set", "moved", given="lost")
    check("and nothing is stored then", result[0] == 69, result)
    engine.back()
    succeeds("and it is there again", "get", "moved", output=VALUE)
    for wrong in ("?x=1", "#x", "%20", "/../a"):
        result = secret("get", "moved", at=url + wrong)
        check(f"a URL with {wrong} is refused", result[0] == 64, result)
    for password in ("user@", "user:password@"):
        result = secret("get", "moved", at=url.replace("127.0.0.1", f"{password}127.0.0.1"))
        check(f"a URL with {password} is refused", result[0] == 64 and "password@" not in result[2], result)

    lost_changes(secret, succeeds, engine, (first, second))
    look_at_helper(first, directory, url)
    removal(tool, secret, succeeds, directory, engine)
    shared_token(secret, (first, second), url)
    many_leases(secret, second, engine)
    succeeds("rekey", "rekey")
    succeeds("the other machine follows", "get", "moved", machine=second, output=VALUE)


def lost_changes(secret, succeeds, engine, machines):
    """A backup is put back on the engine, and every machine has seen later changes."""
    first, second = machines

    def lose():
        older = engine.dump()
        succeeds("a change that will be lost", "set", "lost", given="lost and found")
        succeeds("the other machine has seen it", "get", "lost", machine=second, output="lost and found")
        engine.restore(older)
        for machine in machines:
            result = secret("get", "lost", machine=machine)
            check("the backup is refused", result[0] == 65, result)
            succeeds("what was seen last can be read", "get", "lost", "--offline", machine=machine, output="lost and found")

    def pin(*arguments, machine):
        found = re.search(r"coffer-pin-v1:[\w-]+", "".join(map(str, secret("trust", *arguments, machine=machine))))
        return found.group(0) if found else ""

    lose()
    names = [name for name in os.listdir(f"{second.home}/.cache/coffer") if name.endswith(".vault")]
    check("there is one copy", len(names) == 1, names)
    shutil.copy(f"{second.home}/.cache/coffer/{names[0]}", f"{second.home}/copy.vault")
    succeeds("a machine accepts the backup", "trust", "--pin", pin(machine=second), machine=second)
    result = secret("merge", "--yes", f"{second.home}/copy.vault", machine=second)
    check("its copy brings the change back", result[0] == 0, result)
    succeeds("and every machine accepts that", "get", "lost", machine=first, output="lost and found")
    succeeds("remove it again", "remove", "lost")

    lose()
    result = secret("trust", "--advance", "--pin", pin("--advance", machine=first), machine=first)
    check("without a copy, trust --advance accepts the backup", result[0] == 0, result)
    result = secret("get", "lost", machine=second)
    check("the other machine accepts it too, without the change", result[0] == 1, result)


def removal(tool, secret, succeeds, directory, engine):
    """A key is removed, and four machines with records and four jobs with pins go on."""
    def identity_pin():
        return re.search(r"identity pin: (\S+)", secret("verify")[1]).group(1)

    former = identity_pin()
    machines = [Machine(tool, directory, f"machine{number}", engine.environment) for number in range(4)]
    jobs = [Machine(tool, directory, f"job{number}", engine.environment) for number in range(4)]
    for machine in machines:
        check("a machine is set up once", secret("trust", "--pin", former, machine=machine)[0] == 0)
    slot = re.search(r"^(\w+)", next(line for line in secret("key", "list")[1].splitlines()[::-1] if line.strip()))
    result = secret("key", "remove", slot.group(1))
    check("a key is removed", result[0] == 0, result)
    for machine in machines:
        result = secret("get", "moved", machine=machine)
        check("a machine with a record follows", result[:2] == (0, VALUE), result)
    pin = identity_pin()
    check("the pin is another one", pin != former)
    for job in jobs:
        result = secret("get", "moved", machine=job, COFFER_PIN=former)
        check("a job with the former pin is refused", result[0] == 65 and "another master key" in result[2], result)
        result = secret("get", "moved", machine=job, COFFER_PIN=pin)
        check("a job with the new pin goes on", result[:2] == (0, VALUE), result)
    result = secret("get", "moved", machine=jobs[0], COFFER_PIN=pin, COFFER_KEY_FILE=f"{directory}/other-key")
    check("the removed key opens nothing", result[0] == 77, result)


def shared_token(secret, machines, url):
    """Twelve workers on two machines refresh one token. Each refresh needs the token of the one before."""
    def worker(machine, count):
        return subprocess.Popen([f"{os.path.dirname(machine.tool)}/CofferProbe", "refresh", url, str(count)],
                                env=machine.variables, stderr=subprocess.PIPE, text=True)

    def token():
        return int(secret("get", "--service", "probe", "token")[1] or 0)

    workers = [worker(machine, 5) for machine in machines for _ in range(6)]
    results = [(process.communicate(timeout=TIMEOUT)[1], process.returncode) for process in workers]
    check("every worker has its turns", all(status == 0 for _, status in results), results)
    check("no turn is lost or taken twice", token() == 60, token())
    # A holder dies, most likely with the lease.
    killed = worker(machines[0], 1000)
    end = time.monotonic() + TIMEOUT
    while token() < 63 and time.monotonic() < end:
        time.sleep(0.1)
    killed.kill()
    killed.communicate()
    before = token()
    error = worker(machines[1], 1).communicate(timeout=TIMEOUT)[1]
    check("the next worker goes on when a holder has died", before >= 63 and token() > before, (before, token(), error))


def many_leases(secret, machine, engine):
    """A worker takes a lease 120 times without a change, while another machine reads."""
    watcher = subprocess.Popen([machine.tool, "watch", "token"], env={**machine.variables, "COFFER_BACKEND": f"vault:{engine.url}"},
                               stdout=subprocess.PIPE, text=True)
    try:
        before = secret("verify")[1]
        result = subprocess.run([f"{os.path.dirname(machine.tool)}/CofferProbe", "leases", engine.url, "120"],
                                env=machine.variables, capture_output=True, text=True, timeout=TIMEOUT)
        check("a lease is taken many times", result.returncode == 0, result)
        check("leases are no changes", secret("verify")[1] == before, (before, secret("verify")))
        check("what many leases leave behind has an end", engine.pages() <= 110, engine.pages())
    finally:
        watcher.kill()
        watcher.communicate()


def look_at_helper(machine, directory, url):
    """Looks for the key in all that the helper of a running program has."""
    with open(f"{directory}/key", "rb") as file:
        text = file.read().strip()
    process = subprocess.Popen(
        [machine.tool, "watch", "moved"], env={**machine.variables, "COFFER_BACKEND": f"vault:{url}", "COFFER_KEY": "not a key",
                                              "CREDENTIALS_DIRECTORY": directory, "XDG_CACHE_HOME": f"{directory}/key"}, stdout=subprocess.PIPE)
    end = time.monotonic() + TIMEOUT
    helper = None
    while helper is None and time.monotonic() < end:
        found = [line for line in servers.children(process.pid) if line != process.pid]
        helper = found[0] if found else None
        time.sleep(0.2)
    time.sleep(1)
    with open(f"/proc/{helper}/environ", "rb") as file:
        environment = file.read()
    check("the helper has no variable of a vault", b"COFFER_" not in environment and b"CREDENTIALS_DIRECTORY" not in environment)
    open_files = [os.readlink(f"/proc/{helper}/fd/{name}") for name in os.listdir(f"/proc/{helper}/fd")]
    check("the helper has the engine, its caller and /dev/null open",
          sum(not re.match(r"socket:|/dev/null|anon_inode:|pipe:", name) for name in open_files) == 0
          and os.readlink(f"/proc/{helper}/fd/0") == os.readlink(f"/proc/{helper}/fd/1"), open_files)
    memory = b""
    with open(f"/proc/{helper}/maps") as maps, open(f"/proc/{helper}/mem", "rb") as file:
        for line in maps:
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            if "r" in line.split()[1] and "[v" not in line:
                file.seek(first)
                try:
                    memory += file.read(last - first)
                except OSError:
                    pass
    import base64
    key = base64.urlsafe_b64decode(text.removeprefix(b"coffer-key-v1:"))[:32]
    check("the helper's memory has sealed bytes", bytes.fromhex("89434F460D0A1A0A") in memory, len(memory))
    check("the helper's memory has no key", key not in memory and text not in memory)
    check("the helper's memory has no value", VALUE.encode() not in memory)
    status = open(f"/proc/{process.pid}/status").read()
    # Of an undumpable process, these files belong to root, so that nobody else of the same user may trace it.
    check("its caller may not be traced", os.stat(f"/proc/{process.pid}/environ").st_uid == 0, status)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(100):
        if not os.path.exists(f"/proc/{helper}"):
            break
        time.sleep(0.1)
    check("the helper ends with its caller", not os.path.exists(f"/proc/{helper}"))


def lax_stores(tool, directory):
    """init refuses a store that does not keep one of the rules."""
    for flaw, is_good in (("none", True), ("if-none-match", False), ("if-match", False), ("one-step", False), ("etag", False),
                          ("conditions", False)):
        store = servers.LaxStore(flaw)
        machine = Machine(tool, directory, f"lax-{flaw}", store.environment)
        result = machine.run("init", "--vault", store.url("a"), "--key-file", f"{machine.home}/key", COFFER_KEY_FILE=None)
        check(f"a store without the flaw {flaw} is accepted" if is_good else f"a store with the flaw {flaw} is refused",
              (result[0] == 0) == is_good and (is_good or not any("vaults/a" == name[1:] for name in store.objects)), result)
        if not is_good:
            print(f"       {result[2].strip()}")
        store.stop()


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in OBJECTS:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 64
    with tempfile.TemporaryDirectory(prefix="coffer-engine-") as directory:
        os.chmod(directory, 0o755)
        engine = OBJECTS[sys.argv[2]](directory)
        try:
            use(os.path.abspath(sys.argv[1]), directory, engine)
            if len(sys.argv) == 4:
                result = subprocess.run(
                    ["swift", "test", "--skip-build", "--filter", "RemoteTests.(theVaultPasses|theEngineAndAFile)"],
                    env={**os.environ, **engine.environment, "COFFER_TOOL": "1", "COFFER_ENGINE_URL": engine.url, "COFFER_ENGINE_STEPS": sys.argv[3]},
                    capture_output=True, text=True)
                check("the conformance suite and the random changes", result.returncode == 0 and "2 tests" in result.stdout,
                      result.stdout[-3000:])
                result = subprocess.run(
                    [f"{os.path.dirname(__file__)}/../../../Examples/run", "--refresh"],
                    env={**os.environ, **engine.environment, "COFFER_ENGINE_URL": engine.server.url("refreshed")},
                    capture_output=True, text=True)
                check("killed processes that refresh a token", result.returncode == 0, (result.stdout + result.stderr)[-3000:])
                print(result.stdout.strip().splitlines()[-1], flush=True)
            if sys.argv[2] == "ceph":
                lax_stores(os.path.abspath(sys.argv[1]), directory)
        finally:
            engine.server.stop()
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
