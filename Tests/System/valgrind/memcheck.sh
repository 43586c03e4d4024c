#!/bin/sh
# Runs the main commands of the tool under valgrind's memcheck.
set -eu
if [ $# != 1 ] || [ "$1" = --help ]; then
  echo "usage: Tests/System/valgrind/memcheck.sh SECRET     SECRET is the built tool" >&2
  echo "Needs valgrind and strip. Exit status: 0 nothing found, 1 valgrind reported an error or a command failed," >&2
  echo "64 wrong usage." >&2
  [ "${1:-}" = --help ] && exit 0 || exit 64
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
# valgrind 3.19 cannot read Swift's debug information.
strip -o "$directory/secret" "$1"
suppressions=$(cd "$(dirname "$0")" && pwd)/suppressions.txt
cd "$directory"
export HOME="$directory" XDG_STATE_HOME="$directory/state" XDG_CONFIG_HOME="$directory/config" XDG_DATA_HOME="$directory/data"
unset COFFER_VAULT COFFER_KEY_FILE COFFER_KEY COFFER_BACKEND
failed=0
expect() { # exit status, arguments of the tool
  wanted=$1
  shift
  status=0
  valgrind -q --suppressions="$suppressions" --error-exitcode=99 --log-file=log ./secret --backend vault "$@" >out 2>&1 || status=$?
  if [ "$status" != "$wanted" ]; then
    echo "FAILED: $*: exit status $status instead of $wanted"
    cat out log
    failed=1
  else
    echo "ok: $*"
  fi
}
expect 0 init
printf hunter2 >value
expect 0 set a --from-file value
expect 0 get a
expect 0 set a --from-file value
expect 0 list --long
expect 0 info a
printf 'B=1\nC=2\n' >file
expect 0 import file
expect 0 run --all -- true
expect 0 key add --key-file second
expect 0 export --format json
expect 0 remove a
expect 1 get a
expect 0 history a
expect 0 restore a
expect 0 remove --purge a
expect 0 rekey --key-file second
expect 0 trust
expect 0 verify
# A damaged vault: one byte in each commit slot.
printf x | dd of=data/coffer/default.vault bs=1 seek=5000 conv=notrunc 2>/dev/null
printf x | dd of=data/coffer/default.vault bs=1 seek=9000 conv=notrunc 2>/dev/null
expect 65 list
exit $failed
