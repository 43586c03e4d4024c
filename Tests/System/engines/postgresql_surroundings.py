#!/usr/bin/env python3
"""Uses a vault in PostgreSQL in what surrounds a real server: full disks, a pooler, TLS, roles, standbys, locks and limits.

usage: postgresql_surroundings.py SECRET

SECRET is the built tool; coffer-remote-postgresql must be beside it (Scripts/helpers). It must be run by root: in namespaces of
its own, it mounts small disks and adds an address. It needs the packages postgresql, pgbouncer, openssl and iproute2.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import servers
from use_engine import Machine, check, failures

# An address of this machine that is not one of the loopback interface, and names of it.
ADDRESS, NAME, OTHER_NAME = "192.0.2.10", "db.test", "other.test"
PASSWORD = servers.PostgreSQL.PASSWORD
CERTIFICATES = f"""
key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
for name in ca other-ca; do openssl req -x509 $key -keyout $name.key -out $name.crt -days 2 -subj /CN=$name; done
openssl req $key -keyout server.key -out server.csr -subj /CN=server
sign() {{ echo "subjectAltName=DNS:$2" >names
  openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days "$3" -extfile names -out "$1.crt"; }}
sign good {NAME} 2; sign elsewhere {OTHER_NAME} 2; sign expired {NAME} -1; chown postgres:postgres server.key
"""
shown = []


class User:
    """One machine that uses one vault. Without a key, it makes the vault."""

    def __init__(self, tool, directory, name, url, environment, key=None, pin=None):
        self.url, self.key, environment = url, key or f"{directory}/{name}.key", {**environment, "COFFER_PIN": pin}
        self.machine = Machine(tool, directory, f"{name}.home", {**environment, "COFFER_KEY_FILE": self.key})
        if key is None:
            self.succeeds("init", "init", "--vault", url, "--key-file", self.key, COFFER_KEY_FILE=None, COFFER_BACKEND=None)
            self.pin = re.search(r"identity pin: (\S+)", self("verify")[1]).group(1)

    def __call__(self, *arguments, at=None, **others):
        result = self.machine.run(*arguments, **{"COFFER_BACKEND": f"vault:{at or self.url}", **others})
        shown.append(result[2])
        return result

    def succeeds(self, title, *arguments, output=None, **others):
        result = self(*arguments, **others)
        check(title, result[0] == 0 and (output is None or result[1] == output), result)

    def fails(self, title, statuses, *arguments, says="", never="\0", **others):
        result = self(*arguments, **others)
        check(title, result[0] in statuses and result[2].count("\n") == 1 and len(result[2]) > 40
              and re.search(says, result[2]) and not re.search(never, result[2]), result)
        print(f"       {result[2].strip()}")
        return result


def check_truth(title, result, former, value, found):
    """Whether the vault has what a change to `value` has said."""
    possible = [value] if result[0] == 0 else [former, value] if "It is not known" in result[2] else [former]
    check(title, found in possible, (result, str(found)[:40]))
    print(f"       {result[0]}, and the change is {'there' if found == value else 'not there'}: {result[2].strip()}")


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def reload(server, *settings):
    server.sql(*(f"ALTER SYSTEM SET {setting}" for setting in settings), "SELECT pg_reload_conf()")
    time.sleep(1)


def in_background(work, *arguments):
    return concurrent.futures.ThreadPoolExecutor(1).submit(work, *arguments).result


def hold_row(server, seconds):
    """Lets another session lock the row of the vault, for some seconds. Returns what ends it at once."""
    in_background(server.sql, f"SELECT FROM coffer.vault WHERE name = 'used' FOR UPDATE; SELECT pg_sleep({seconds})")
    holder = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    wait_for(lambda: server.sql(f"SELECT pid {holder}"))
    return lambda: server.sql(f"SELECT pg_terminate_backend(pid, 5000) {holder}")


def mount_disk(path, size):
    """Mounts a small disk. Returns what fills it."""
    os.mkdir(path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700,uid=postgres", "none", path], check=True)
    return lambda: subprocess.run(["dd", "if=/dev/zero", f"of={path}/filling", "bs=4k"], stderr=subprocess.DEVNULL)


def full_disk_of_tables(directory, server, user):
    path = f"{directory}/tables"
    fill = mount_disk(path, "12m")
    server.sql(f"CREATE TABLESPACE small LOCATION '{path}'", "ALTER TABLE coffer.vault SET TABLESPACE small",
               "ALTER TABLE coffer.change SET TABLESPACE small", "ALTER INDEX coffer.change_pkey SET TABLESPACE small")
    user.succeeds("a change on the small disk", "set", "token", given="first")
    fill()
    value = os.urandom(30_000).hex()
    user.fails("a change on a full disk", (74, 75), "set", "large", given=value, says="no room")
    user.fails("a new master key on a full disk", (74, 75), "rekey", says="no room")
    user.succeeds("get on a full disk", "get", "token", output="first")
    check("a full disk stores nothing of the change", user("get", "large")[0] == 1)
    os.remove(f"{path}/filling")
    user.succeeds("the change after some space is free", "set", "large", given=value)
    user.succeeds("what was there before", "get", "token", output="first")
    user.succeeds("what is there now", "get", "large", output=value)
    user.succeeds("verify after a full disk", "verify")


def full_disk_of_log(directory, server, user):
    """The write-ahead log, in segments of 1 MiB, cannot grow, and the server panics. The commit of a change is in the log then:
    it is what another session has put behind it that does not fit."""
    server.run("pg_ctl", "-s", "-D", f"{server.directory}/data", "-m", "fast", "-w", "stop")
    server.run("pg_resetwal", "--wal-segsize=1", "-D", f"{server.directory}/data")
    path, log = f"{directory}/log", f"{server.directory}/data/pg_wal"
    fill = mount_disk(path, "48m")
    subprocess.run(["cp", "-a", f"{log}/.", path], check=True)
    shutil.rmtree(log)
    os.symlink(path, log)
    server.start()
    user.succeeds("a change before the panic", "set", "token", given="former")
    # A commit waits for 0.1 seconds, and nothing else writes the log meanwhile.
    reload(server, "commit_siblings = 0", "commit_delay = 100000")
    os.kill(int(server.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")), signal.SIGSTOP)
    fill()
    in_background(server.sql, """DO $$ BEGIN
        WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid') LOOP PERFORM pg_sleep(0.002); END LOOP;
        PERFORM pg_sleep(0.03), pg_logical_emit_message(false, 'x', repeat('x', 5000000)); END $$""")
    time.sleep(1)
    result = user.fails("a change when the server panics", (69, 74, 75), "set", "token", given="new")
    user.fails("the server is away then", (69,), "get", "token")
    user.succeeds("get --offline works", "get", "--offline", "token", output="former")
    os.remove(f"{path}/filling")
    with contextlib.suppress(Exception):
        server.stop()
    server.start()
    check_truth("a change when the server panics is what was said", result, "former", "new", user("get", "token")[1])
    user.succeeds("a change after the panic", "set", "token", given="after")
    user.succeeds("verify after the panic", "verify")


def pooler(tool, directory, server):
    home, port, results = f"{directory}/pooler", servers.free_port(), {}
    os.mkdir(home)
    pathlib.Path(f"{home}/users").write_text(f'"postgres" "{PASSWORD}"\n')
    pathlib.Path(f"{home}/settings").write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {home}/users\n"
        f"pool_mode = transaction\ndefault_pool_size = 2\nlogfile = {home}/log\n")
    subprocess.run(["chown", "-R", "postgres:postgres", home], check=True)
    process = subprocess.Popen(server.as_user([shutil.which("pgbouncer"), "-q", f"{home}/settings"]), cwd="/")
    try:
        wait_for(lambda: subprocess.run(
            [f"{server.programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]).returncode == 0)
        url = f"postgresql://127.0.0.1:{port}/postgres/pooled"
        user = User(tool, directory, "pooled", url, server.environment)
        user.succeeds("pooler: set", "set", "token", given="first")
        user.succeeds("pooler: get", "get", "token", output="first")
        user.succeeds("pooler: remote check", "remote", "check", url)
        user.fails("pooler: a wrong password", (77,), "get", "token", PGPASSWORD="wrong", says="refused this user")
        user.fails("pooler: no such database", (78,), "get", "token", at=url.replace("/postgres/", "/nowhere/"))
        check("pooler: no parameter of the helper is refused", "unsupported" not in pathlib.Path(f"{home}/log").read_text())
        watching = in_background(lambda: user("watch", program=("timeout", "10")))
        time.sleep(3)
        user("set", "token", given="second")
        check("pooler: watch notices a change", "token" in watching()[1], watching())

        def change_often(number):
            writer = User(tool, directory, f"writer{number}", url, server.environment, key=user.key, pin=user.pin)
            for change in range(10):
                results[f"w{number}-{change}"] = writer("set", f"w{number}-{change}", given=f"value {number} {change}")
        for wait in [in_background(change_often, number) for number in range(8)]:
            wait()
        user("get", "token")
        done = [name for name, result in results.items() if result[0] == 0]
        statuses = [result[0] for result in results.values()]
        check("pooler: 8 writers end with 0 or 75", len(statuses) == 80 and {*statuses} <= {0, 75}, statuses)
        wrong = [name for name in done if user("get", "--max-age", "1m", name)[1] != f"value {name[1:].replace('-', ' ')}"]
        check(f"pooler: {len(done)} of 80 changes were acknowledged and are there", not wrong, wrong)
    finally:
        process.kill()
        process.wait()


def tls(tool, directory, server):
    services, other = f"{directory}/tls-services", f"{directory}/other-ca.crt"
    subprocess.run(["sh", "-ec", CERTIFICATES], check=True, cwd=directory, capture_output=True)
    with open(f"{server.directory}/data/pg_hba.conf", "a") as file:
        file.write(f"host postgres all {ADDRESS}/32 scram-sha-256\n")
    service = f"host={NAME}\nport={server.port}\ndbname=postgres\n"
    pathlib.Path(services).write_text(f"[silent]\n{service}\n[plain]\n{service}sslmode=disable\n")
    reload(server, f"ssl_key_file = '{directory}/server.key'", f"ssl_cert_file = '{directory}/good.crt'", "ssl = on")
    url, silent = f"postgresql://{NAME}:{server.port}/postgres/tls", "postgresql+service://silent/tls"
    trust = {**server.environment, "PGSSLROOTCERT": f"{directory}/ca.crt", "PGSERVICEFILE": services}
    user = User(tool, directory, "tls", url, trust)
    user.succeeds("TLS: set", "set", "token", given="first")
    user.succeeds("TLS: get", "get", "token", output="first")
    by_pin = {"output": "first", "COFFER_PIN": user.pin}
    user.succeeds("TLS: a service that says nothing of TLS", "get", "token", at=silent, PGSSLMODE="disable", **by_pin)
    # This message names SSL, and is no matter of certificates.
    user.fails("TLS: a user who is not in pg_hba.conf", (77,), "get", "token", at=url.replace("/postgres/", "/template1/"),
               says="refused this user", never="prove who it is")
    for title, setting, variables in (
            ("an unknown authority", None, {"PGSSLROOTCERT": other}),
            ("no authority", None, {"PGSSLROOTCERT": None}),
            ("another name of the host", None, {"at": url.replace(NAME, OTHER_NAME)}),
            ("an unknown authority and PGSSLMODE=require", None, {"PGSSLROOTCERT": other, "PGSSLMODE": "require"}),
            ("a certificate of another host", f"ssl_cert_file = '{directory}/elsewhere.crt'", {}),
            ("an expired certificate", f"ssl_cert_file = '{directory}/expired.crt'", {}),
            ("a server without TLS", "ssl = off", {}),
            ("a server without TLS and PGSSLMODE=disable", None, {"PGSSLMODE": "disable"}),
            ("a server without TLS in a service", None, {"at": silent, "PGSSLMODE": "disable"})):
        if setting:
            reload(server, setting)
        user.fails(f"TLS: {title} is refused", (77,), "get", "token", says="prove who it is", **variables)
    user.succeeds("TLS: a service may say that there is none", "get", "token", at="postgresql+service://plain/tls", **by_pin)


def roles(user, server):
    server.sql("CREATE DATABASE crowded CONNECTION LIMIT 0")
    for role, limit in (("reader", -1), ("stranger", -1), ("crowded", 0)):
        server.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT {limit}")
    server.sql("GRANT USAGE ON SCHEMA coffer TO reader", "GRANT SELECT ON coffer.vault, coffer.change TO reader")
    user("set", "token", given="for roles")
    user.succeeds("a reader gets", "get", "token", output="for roles", PGUSER="reader")
    for role, command in (("reader", "set"), ("stranger", "get"), ("stranger", "set")):
        user.fails(f"a {role} does not {command}", (77,), command, "token", given="lost", PGUSER=role, says="may not do that")
    user.succeeds("nothing is lost by them", "get", "token", output="for roles")
    never = "password|There is no database|did not prove"
    user.fails("too many connections of a role", (69, 75), "get", "token", PGUSER="crowded", never=never)
    user.fails("too many connections to a database", (69, 75), "get", "token", PGUSER="reader", never=never,
               at=user.url.replace("/postgres/", "/crowded/"))
    server.sql("ALTER ROLE reader SET default_transaction_read_only = on")
    result = user("get", "token", PGUSER="reader")
    check("a reader with read-only transactions is not told of a standby", "is a standby" not in result[2], result)


def hosts_and_services(directory, user, server, standby):
    pin, both = user.pin, standby.url("used", server)
    wrong_first = both.replace(str(standby.port), str(servers.free_port()))
    user("set", "token", given="first")
    user.fails("a standby alone", (69,), "get", "token", at=standby.url("used"), says="standby")
    user.succeeds("a wrong host and the primary", "get", "token", at=wrong_first, output="first", COFFER_PIN=pin)
    user.succeeds("a standby and the primary", "set", "token", given="by hosts", at=both, COFFER_PIN=pin)
    user.fails("a wrong host, and a wrong password at the next", (77,), "get", "token", at=wrong_first, PGPASSWORD="wrong",
               says="PostgreSQL says: .*password authentication", never="Connection refused")
    pathlib.Path(f"{directory}/services").write_text(
        f"[app]\nhost={server.directory}\nport={server.port}\ndbname=postgres\nuser=postgres\npassword={PASSWORD}\n")
    service = {"at": "postgresql+service://app/used", "COFFER_PIN": pin, "PGSERVICEFILE": f"{directory}/services",
               "PGUSER": None, "PGPASSWORD": None}
    user.succeeds("a service with a Unix socket", "get", "token", output="by hosts", **service)
    user.succeeds("a change by it", "set", "token", given="by service", **service)
    user.succeeds("which is there", "get", "token", output="by service")
    user.fails("no such service", (78,), "get", "token", **{**service, "at": "postgresql+service://none/used"})


def locks_and_limits(user, server):
    for title, seconds, statuses in (("a lock of 12 seconds", 12, (0,)), ("a lock that lasts longer", 55, (69, 75))):
        user("set", "token", given="former")
        end_lock, start = hold_row(server, seconds), time.monotonic()
        result = user("set", "token", given=title)
        check(f"{title}: set ends by itself", result[0] in statuses and time.monotonic() - start < 45, result)
        user.succeeds(f"{title}: get works", "get", "token")
        end_lock()
        time.sleep(5)
        check_truth(f"{title}: it is what was said", result, "former", title, user("get", "token")[1])
        user.succeeds(f"{title}: then set works", "set", "token", given="unlocked")
    server.sql(f"CREATE ROLE limited SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"):
        server.sql(f"ALTER ROLE limited SET {setting} = '100ms'")
        if "idle" in setting:
            user.succeeds(f"{setting}: set", "set", "token", given="unlocked", PGUSER="limited")
        else:
            end_lock, limited = hold_row(server, 55), {"given": "lost", "PGUSER": "limited"}
            user.fails(f"{setting}: set while another has the row", (75,), "set", "token", says="too busy", **limited)
            end_lock()
            time.sleep(1)
        user.succeeds(f"{setting}: get what was there", "get", "token", output="unlocked")
        server.sql(f"ALTER ROLE limited RESET {setting}")
    # Somebody ends a commit's wait for a standby.
    reload(server, "synchronous_standby_names = 'nobody'")
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'coffer'"
    change = in_background(lambda: user("set", "token", given="unsafe"))
    wait_for(lambda: server.sql(waiting))
    server.sql(f"SELECT pg_cancel_backend(pid) FROM ({waiting}) w")
    result = change()
    check("a commit that is perhaps on no standby is not acknowledged", result[0] in (69, 75), result)
    reload(server, "synchronous_standby_names = ''")
    check_truth("and is what was said", result, "unlocked", "unsafe", user("get", "token")[1])


def rollback(tool, directory, server):
    """Whoever runs the server lets no reader confirm a state, so that it might not be recorded, and puts an older one back."""
    writer = User(tool, directory, "rolled", server.url("rolled"), server.environment)
    writer("set", "token", given="leaked")
    as_reader = {**server.environment, "PGUSER": "reader"}
    reader = User(tool, directory, "rolled.reader", writer.url, as_reader, writer.key, writer.pin)
    reader.succeeds("rollback: the older state", "get", "token", output="leaked")
    server.sql("CREATE TABLE kept_vault AS SELECT * FROM coffer.vault", "CREATE TABLE kept_change AS SELECT * FROM coffer.change")
    writer("set", "token", given="new")
    server.sql("""DO $$ DECLARE f regprocedure; BEGIN
        FOR f IN SELECT oid::regprocedure FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
          EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
        END LOOP; END $$""")
    reader.succeeds("rollback: a state that is not confirmed", "get", "token", output="new")
    server.sql("DELETE FROM coffer.change", "DELETE FROM coffer.vault", "INSERT INTO coffer.vault SELECT * FROM kept_vault",
               "INSERT INTO coffer.change SELECT * FROM kept_change")
    reader.fails("rollback: the older state again", (65,), "get", "token", says="seen before", never="leaked")


def recipe(tool, directory, server):
    """The roles and policies of the recipe, as they stand there: a role sees its own vault."""
    page = pathlib.Path(__file__).resolve().parents[3] / "Documentation/Recipes/fleet.md"
    policies = re.search(r"```sql\n(.*?)```", page.read_text(), re.S).group(1)
    helper = [f"{os.path.dirname(tool)}/coffer-remote-postgresql", "--tables"]
    tables = subprocess.run(helper, capture_output=True, text=True, check=True).stdout
    server.sql("CREATE DATABASE recipe")
    database = server.conninfo.replace("dbname=postgres", "dbname=recipe")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", tables + policies)
    for role in ("ci", "web"):
        server.sql(f"CREATE ROLE vault_{role}",
                   f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' IN ROLE coffer_write, vault_{role}")
    environment = {**server.environment, "PGUSER": "ci"}
    user = User(tool, directory, "recipe", server.url("ci").replace("/postgres/", "/recipe/"), environment)
    user.succeeds("recipe: remote check", "remote", "check", user.url)
    user.succeeds("recipe: set", "set", "token", given="of ci")
    user.succeeds("recipe: get", "get", "token", output="of ci")
    user.fails("recipe: another role sees no vault", (66, 65), "get", "token", PGUSER="web")


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 64
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in ("pgbouncer", "openssl", "ip", "unshare", "mount"):
        if not shutil.which(program):
            raise servers.Missing(f"There is no {program}. Install the packages pgbouncer, openssl, iproute2 and mount.")
    if "COFFER_TEST_NAMESPACES" not in os.environ:
        os.environ["COFFER_TEST_NAMESPACES"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", sys.executable, *sys.argv])
    tool, started = os.path.abspath(sys.argv[1]), []
    with tempfile.TemporaryDirectory(prefix="coffer-surroundings-") as directory:
        os.chmod(directory, 0o755)
        pathlib.Path(f"{directory}/hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {NAME} {OTHER_NAME}\n")
        for command in ("ip link set lo up", f"ip address add {ADDRESS}/32 dev lo", f"mount --bind {directory}/hosts /etc/hosts"):
            subprocess.run(command.split(), check=True)
        try:
            started.append(server := servers.PostgreSQL(f"{directory}/server", ["listen_addresses = '*'"]))
            user = User(tool, directory, "user", server.url("used"), server.environment)
            started.append(standby := servers.PostgreSQL(f"{directory}/standby", primary=server))
            hosts_and_services(directory, user, server, standby)
            standby.stop()
            roles(user, server)
            rollback(tool, directory, server)
            recipe(tool, directory, server)
            pooler(tool, directory, server)
            tls(tool, directory, server)
            locks_and_limits(user, server)
            started.append(full := servers.PostgreSQL(f"{directory}/full", ["wal_buffers = 16MB", "autovacuum = off"]))
            user = User(tool, directory, "full", full.url("full"), full.environment)
            full_disk_of_tables(directory, full, user)
            full_disk_of_log(directory, full, user)
        finally:
            for server in started:
                with contextlib.suppress(Exception):
                    server.stop()
            for path in ("/etc/hosts", f"{directory}/tables", f"{directory}/log"):
                subprocess.run(["umount", "--lazy", path], stderr=subprocess.DEVNULL)
        check("no message has the password", not any(PASSWORD in text for text in shown))
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
