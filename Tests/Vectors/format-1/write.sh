#!/usr/bin/env bash
# Writes the vaults of this directory and their vectors with a built `secret`: only until a release has written such a vault.
#
# usage: write.sh SECRET
set -euo pipefail
[ $# = 1 ] || { sed -n '2,4s/^# \?//p' "$0" >&2; exit 64; }
secret=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data COFFER_NO_PROMPT=1
s() { "$secret" --vault "$vault" "$@" 2>>errors || { cat errors >&2; exit 1; }; }

vault=created.vault
"$secret" init --vault created.vault --key-file key >/dev/null 2>&1
export COFFER_KEY_FILE=$work/key
cp created.vault changed.vault
vault=changed.vault
printf hunter2 | s -s mail set password
printf '' | s set empty --allow-empty
head -c 5000 /dev/zero | tr '\0' v | s set large
for value in one two three; do printf %s "$value" | s set versions; done
printf x | s set gone
s remove gone
umask 077
s key add --recovery | tr -d ' \n' | grep -o 'coffer-key-v1:.*' >recovery
for name in identity former; do "$secret" key new --x25519 --output "$name" >"$name.recipient" 2>/dev/null; done
s key add --recipient "$(cat identity.recipient)" --label identity >/dev/null
s key add --recipient "$(cat former.recipient)" --label former >/dev/null
printf 'first passphrase' | s key add --passphrase --label laptop >/dev/null
printf 'first passphrase' >passphrase
COFFER_PASSPHRASE_FILE=$work/passphrase s key remove "$(s key list | awk '/former/ { print $1 }')" --key-file recovery >/dev/null
printf four | s set versions
printf 'second passphrase' | s key change-passphrase >/dev/null
printf five | s set versions --label 'A later label' --attribute env=prod
printf tail | s -s mail set other
printf y | s set gone2
s remove gone2

/usr/bin/python3 - "$here" key recovery identity <<'PYTHON'
import json
import subprocess
import sys

directory, *files = sys.argv[1:]
key, recovery, identity = (open(name).read().split()[-1] for name in files)
now, vectors = None, []
for name, comment, vault, credential in (
    ("created", "a new vault", "created", {"key_text": key}),
    ("changed-key", "versions and removed secrets in the base and in the tail, four key slots, the lineage and the list of two that were removed", "changed", {"key_text": key}),
    ("changed-recovery-key", "the same, with the recovery key", "changed", {"key_text": recovery}),
    ("changed-passphrase", "the same, with the passphrase", "changed", {"passphrase": "second passphrase"}),
    ("changed-identity", "the same, with the identity of a recipient", "changed", {"identity": identity}),
):  # fmt: skip
    sys.path.insert(0, f"{directory}/..")
    import time
    from vector_outcome import outcome_of
    now = now or int(time.time() * 1000)
    entry = {"name": name, "comment": comment, "vault": f"{vault}.vault", "credential": credential, "now": now}
    entry["expect"], _ = outcome_of(open(f"{vault}.vault", "rb").read(), entry)
    vectors.append(entry)
with open("vectors.json", "w", encoding="ascii") as stream:
    stream.write("[\n" + ",\n".join(json.dumps(entry) for entry in vectors) + "\n]\n")
PYTHON
cp created.vault changed.vault vectors.json "$here"
