#!/usr/bin/env bash
# A program in another package stores and reads values through `import Coffer` and sees changes by the tool.
set -euo pipefail
if [ $# != 1 ] || [ "$1" = --help ]; then
  echo "usage: Tests/System/consumer/consumer.sh SECRET     SECRET is the built tool" >&2
  echo "Exit status: 0 every check passed, 1 a check failed or the program does not build, 64 wrong usage." >&2
  [ "${1:-}" = --help ] && exit 0 || exit 64
fi
secret=$(realpath "$1")
cd "$(dirname "$0")"
# The directory of the examples, so that Coffer is compiled once for all of them.
scratch=../../../Examples/.build
build=$(swift build --scratch-path $scratch 2>&1) || { printf '%s\n' "$build"; exit 1; }
printf '%s\n' "$build" | tail -n 3
consumer=$(realpath "$(swift build --scratch-path $scratch --show-bin-path)")/Consumer
fetched=$(cd $scratch/checkouts && echo *)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state
unset COFFER_VAULT COFFER_KEY COFFER_KEY_FILE DBUS_SESSION_BUS_ADDRESS
"$secret" init

expect() { # what, expected, found
  if [ "$2" != "$3" ]; then
    printf 'FAILED: %s: expected\n%s\nfound\n%s\n' "$1" "$2" "$3"
    exit 1
  fi
  echo "ok: $1"
}

expect "the build of a program that depends on Coffer prints no warning" "" "$(grep -F 'warning: ' <<<"$build" || true)"
expect "packages for traits that are off are not fetched" swift-argument-parser "$fetched"

expect "a store in top-level code stores, and a chain runs once" $'d f\n0 0' "$("${consumer%/*}/TopLevel")"

# Without standard streams the vault's file gets descriptor 0, 1 or 2, which the program prints to.
"$consumer" store >&- 2>&- <&-
expect "a program without standard streams does not print into the vault" 0 \
  "$("$secret" verify >/dev/null; echo $?)"
expect "a later process reads the values" "tøken true [1, 2, 3]" "$("$consumer" read)"
expect "the tool reads the same bytes" "tøken" "$("$secret" -s consumer get token)"

"$consumer" watch >"$work/seen" &
watcher=$!
for _ in $(seq 100); do grep -q 'value: tøken' "$work/seen" && break; sleep 0.1; done
printf 'from the tool' | "$secret" -s consumer set token
for _ in $(seq 100); do grep -q 'value: from the tool' "$work/seen" && break; sleep 0.1; done
printf 'done' | "$secret" -s consumer set token
timeout 20 tail --pid="$watcher" -f /dev/null || kill "$watcher"
wait "$watcher"
expect "\`values\` yields each change" $'value: tøken\nvalue: from the tool\nvalue: done' \
  "$(grep value: "$work/seen")"
expect "Observation fires" "observed" "$(grep observed "$work/seen")"
