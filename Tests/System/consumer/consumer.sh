#!/usr/bin/env bash
# A program in another package keeps its values over a restart, and sees what `secret set` writes meanwhile.
# Usage: Tests/System/consumer/consumer.sh SECRET, where SECRET is the built tool.
set -euo pipefail
secret=$(realpath "$1")
cd "$(dirname "$0")"
swift build 2>&1 | tail -n 3
consumer=$(swift build --show-bin-path)/Consumer

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state
unset COFFER_VAULT COFFER_KEY COFFER_KEY_FILE DBUS_SESSION_BUS_ADDRESS
"$secret" init

expect() { # what, expected, found
  if [ "$2" != "$3" ]; then
    printf 'FAILED %s: expected\n%s\nand found\n%s\n' "$1" "$2" "$3"
    exit 1
  fi
  echo "ok: $1"
}

"$consumer" store >&- 2>&- <&-
expect "printing without standard streams harms no vault" 0 "$("$secret" verify >/dev/null; echo $?)"
expect "values after a restart" "tøken true [1, 2, 3]" "$("$consumer" read)"
expect "the tool reads the same bytes" "tøken" "$("$secret" -s consumer get token)"

"$consumer" watch >"$work/seen" &
watcher=$!
for _ in $(seq 100); do grep -q 'value: tøken' "$work/seen" && break; sleep 0.1; done
printf 'from the tool' | "$secret" -s consumer set token
for _ in $(seq 100); do grep -q 'value: from the tool' "$work/seen" && break; sleep 0.1; done
printf 'done' | "$secret" -s consumer set token
timeout 20 tail --pid="$watcher" -f /dev/null || kill "$watcher"
wait "$watcher"
expect "what values yielded" $'value: tøken\nvalue: from the tool\nvalue: done' "$(grep value: "$work/seen")"
expect "Observation fired" "observed" "$(grep observed "$work/seen")"
