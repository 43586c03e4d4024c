#!/bin/sh
# Runs the whole suite under the address sanitizer, with a trap for undefined behaviour in C, and under the thread
# sanitizer.
#
# Left out are the memory search (CofferMemoryTests) and the test that lookups do not use more memory, because a sanitizer keeps
# released memory; and the scenarios with faketime, which does not run with the address sanitizer. `secret doctor` is one of
# them: the sanitizer locks no memory either.
usage() {
  cat <<END
usage: Tests/System/sanitizers/sanitize.sh [address|thread]... [-- ARGUMENT...]

Without a sanitizer, runs both. Each ARGUMENT goes to \`swift test\`. Reports are in .build/SANITIZER/reports.
Exit status: 0 all tests passed without a report, 1 a test failed or a sanitizer reported an error, 64 wrong usage.
END
}
set -eu
cd "$(dirname "$0")/../../.."
chosen=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
    address | thread) chosen="$chosen $1" ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 64
      ;;
  esac
  shift
done
[ $# -eq 0 ] || shift

# Swift's own backtraces would replace the sanitizer's report.
export SWIFT_BACKTRACE=enable=no CI=true COFFER_WITHOUT_SCENARIOS="doctor.txt age.txt"
failed=0
for sanitizer in ${chosen:-address thread}; do
  echo "== $sanitizer"
  export COFFER_TOOL=1
  reports=$PWD/.build/$sanitizer/reports
  rm -rf "$reports"
  mkdir -p "$reports"
  # Optimised, because some tests make hundreds of thousands of attempts.
  flags="-c release -Xswiftc -enable-testing"
  [ "$sanitizer" = thread ] || flags="$flags -Xcc -fsanitize=undefined -Xcc -fsanitize-trap=undefined"
  # Reports go to files, so that those of child processes are found as well. Leaks are not reported: the slabs of
  # guarded memory are never freed.
  export ASAN_OPTIONS="detect_leaks=0:disable_coredump=0:log_path=$reports/address"
  export TSAN_OPTIONS="disable_coredump=0:log_path=$reports/thread:suppressions=$PWD/Tests/System/sanitizers/thread_suppressions.txt"
  if [ "$sanitizer" = thread ]; then
    clang -c -O2 -fPIC -Wall -Wextra -Werror Tests/System/sanitizers/runtime.c -o .build/thread/runtime.o
    flags="$flags -Xlinker $PWD/.build/thread/runtime.o"
  fi
  # shellcheck disable=SC2086
  swift build --build-tests --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" $flags
  # shellcheck disable=SC2086
  swift test --skip-build --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" $flags --skip CofferMemoryTests \
    --skip tenThousandLookupsDoNotUseMoreMemory "$@" || failed=1
  if [ -n "$(ls "$reports")" ]; then
    grep -hE 'ERROR|WARNING|SUMMARY' "$reports"/* | sort | uniq -c
    failed=1
  fi
done
exit $failed
