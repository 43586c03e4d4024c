#!/usr/bin/env bash
# Programs in another package build from scratch, with and without the keyring. They store and read values through `import
# Coffer` and see changes by the tool.
set -euo pipefail
if [ $# != 1 ] || [ "$1" = --help ]; then
  echo "usage: Tests/System/consumer/consumer.sh SECRET     SECRET is the built tool" >&2
  echo "Exit status: 0 every check passed, 1 a check failed or the program does not build, 64 wrong usage." >&2
  [ "${1:-}" = --help ] && exit 0 || exit 64
fi
secret=$(realpath "$1")
cd "$(dirname "$0")"
unset COFFER_TOOL COFFER_VAULT COFFER_KEY COFFER_KEY_FILE DBUS_SESSION_BUS_ADDRESS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { # what, expected, found
  if [ "$2" != "$3" ]; then
    printf 'FAILED: %s: expected\n%s\nfound\n%s\n' "$1" "$2" "$3"
    exit 1
  fi
  echo "ok: $1"
}

# The status of a build in an empty directory, and what it prints besides its progress.
build() { # directory, what runs `swift`
  local scratch=$work/$1 status=0
  shift
  "$@" swift build --scratch-path "$scratch" >"$work/output" 2>&1 || status=$?
  grep -vE '^(\[|Building for debugging|Build complete)' "$work/output" || true
  echo "status $status"
}
# Hides GLib's headers and what leads to them.
without_headers() {
  # shellcheck disable=SC2016
  unshare --user --map-root-user --mount sh -c '
    mkdir -p "$0"
    mount --bind "$0" /usr/include/glib-2.0
    mount --bind /dev/null "$(pkg-config --variable=libdir gobject-2.0)/pkgconfig/gobject-2.0.pc"
    exec "$@"' "$work/empty" "$@"
}
expect "a clean build with the keyring prints no warning" "status 0" "$(build keyring env)"
expect "a clean build without the keyring prints no warning" "status 0" "$(build vault env CONSUMER_TRAITS=none)"
expect "without GLib's headers there is one error, with the Debian package and the trait" $'1\n1' \
  "$(build headers without_headers >"$work/errors"
  grep -c ' error: ' "$work/errors"; grep -c 'error: .*libsecret-1-dev.*traits: \[\]' "$work/errors")"
expect "nothing but Coffer is fetched" 1 \
  "$(swift package --scratch-path "$work/keyring" show-dependencies | grep -c '[─]')"
expect "a program without the keyring does not need its libraries" "" \
  "$(ldd "$work/vault/debug/Consumer" | grep -E 'secret|glib|gobject' || true)"
consumer=$work/keyring/debug/Consumer

export HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data XDG_STATE_HOME=$work/state
"$secret" init

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
