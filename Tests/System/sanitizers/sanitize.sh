#!/bin/sh
# The whole suite under the address sanitizer, with undefined behaviour in C trapped, and under the thread sanitizer:
#
#     Tests/System/sanitizers/sanitize.sh [address|thread]… [-- ARGUMENTS OF swift test]
#
# Exit status 1: a test failed, or a sanitizer reported something; what it said is in `.build/SANITIZER/reports`.
#
# The search of memory (CofferMemoryTests) and the test that memory does not grow are left out: a sanitizer keeps what
# was let go, to notice its use. So is the scenario of `secret doctor`: the address sanitizer locks no memory, and does
# not bear faketime.
set -eu
cd "$(dirname "$0")/../../.."
chosen=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  chosen="$chosen $1"
  shift
done
[ $# -eq 0 ] || shift

# Swift's own backtraces would come in between.
export SWIFT_BACKTRACE=enable=no CI=true COFFER_WITHOUT_SCENARIOS=doctor.txt
failed=0
for sanitizer in ${chosen:-address thread}; do
  echo "== $sanitizer"
  reports=$PWD/.build/$sanitizer/reports
  rm -rf "$reports"
  mkdir -p "$reports"
  # Optimised: the tests try some things hundreds of thousands of times.
  flags="-c release -Xswiftc -enable-testing"
  [ "$sanitizer" = thread ] || flags="$flags -Xcc -fsanitize=undefined -Xcc -fsanitize-trap=undefined"
  # Reports go to files, also those of the processes that the tests start. Slabs of guarded memory are kept on purpose:
  # leaks are not looked for.
  export ASAN_OPTIONS="detect_leaks=0:disable_coredump=0:log_path=$reports/address"
  export TSAN_OPTIONS="disable_coredump=0:log_path=$reports/thread:suppressions=$PWD/Tests/System/sanitizers/thread_suppressions.txt"
  # shellcheck disable=SC2086
  swift build --build-tests --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" $flags
  # shellcheck disable=SC2086
  swift test --skip-build --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" $flags --skip CofferMemoryTests \
    --skip tenThousandLookupsDoNotGrow "$@" || failed=1
  if [ -n "$(ls "$reports")" ]; then
    grep -hE 'ERROR|WARNING|SUMMARY' "$reports"/* | sort | uniq -c
    failed=1
  fi
done
exit $failed
