#!/bin/sh
# Fuzzes the parsers of the libraries and of the tool. Fuzz/README.md lists the targets and what each checks.
usage() {
  cat <<END
usage: Fuzz/fuzz.sh [--fast] [SECONDS] [TARGET]...
       Fuzz/fuzz.sh [--fast] --inputs COUNT [TARGET]...
       Fuzz/fuzz.sh --minimize [TARGET]...

Fuzzes each TARGET (default: every target) for an equal share of SECONDS (default: 60). With 0, runs each input of
the corpus once. --inputs fuzzes each TARGET with COUNT inputs. --fast leaves AddressSanitizer out, for about three
times as many inputs a second, in .build/fuzz-fast. --minimize rewrites Fuzz/Corpus with the smallest set of inputs that
reaches the same code.

New inputs go to .build/fuzz/corpus, and inputs that break a rule go to .build/fuzz/findings.
Needs Swift's clang, libsodium, and python3 with PyNaCl.
Exit status: 0 no input broke a rule, 1 an input broke a rule or the build failed, 64 wrong usage.
END
}
set -eu
cd "$(dirname "$0")/.."
build=.build/fuzz
minimize=false
seconds=60
inputs=
sanitizer=address
if [ "${1:-}" = --fast ]; then
  build=.build/fuzz-fast
  sanitizer=fuzzer
  shift
fi
case "${1:-}" in
  -h | --help)
    usage
    exit 0
    ;;
  --minimize)
    minimize=true
    shift
    ;;
  --inputs)
    inputs=${2:?COUNT is missing}
    shift 2
    ;;
  [0-9]*)
    seconds=$1
    shift
    ;;
esac
all=$(sed -n 's/^  case \([a-z]*\)$/\1/p; s/^  case .* = "\(.*\)"$/\1/p' Fuzz/Sources/FuzzTarget.swift)
targets=${*:-$all}
for target in $targets; do
  echo "$all" | grep -qx -e "$target" || {
    echo "Fuzz/fuzz.sh: there is no target '$target'. The targets are:" $all >&2
    usage >&2
    exit 64
  }
done

# Swift's backtrace handler would hide a crash from libFuzzer.
export SWIFT_BACKTRACE=enable=no
# Leaks are not reported: the slabs of guarded memory are never freed.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"

# The test target is built with the coverage that guides the fuzzer, and linked with libFuzzer's `main`.
# shellcheck disable=SC2086
COFFER_TOOL=1 swift build -c release --target CofferFuzzTests --disable-default-traits --scratch-path "$build" \
  -Xswiftc -enable-testing -Xswiftc -use-ld=lld -Xswiftc "-sanitize=$sanitizer" \
  -Xswiftc -sanitize-coverage=edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table
# Object files of sources that were removed stay in the build directory, so only those of listed sources are linked.
objects=$(for list in "$build"/release/*.build/sources; do
  case $list in *-tool.build/sources) continue ;; esac
  # A path is a line, in quotes if it has a space in it.
  sed "s#^.*/#${list%sources}#; s#'\$##; s#\$#.o#" "$list"
done)
objects="$objects $(find "$build/release/" -path '*/C*.build/*.c.o')"
# shellcheck disable=SC2086
swiftc -use-ld=lld "-sanitize=fuzzer,$sanitizer" $objects -lsodium -lTesting -o "$build/fuzzer" 2>"$build/link.log" || {
  cat "$build/link.log"
  exit 1
}
mkdir -p "$build/findings"
rm -rf "$build/seeds" "$build/unpacked"
/usr/bin/python3 Fuzz/seeds.py "$build/seeds"

# shellcheck disable=SC2086
share=$((seconds / $(echo $targets | wc -w)))
if [ -n "$inputs" ]; then budget="-runs=$inputs"; elif [ "$share" -eq 0 ]; then budget="-runs=0"; else budget="-max_total_time=$share"; fi
status=0
for target in $targets; do
  found=$build/corpus/$target
  unpacked=$build/unpacked/$target
  seeds=$build/seeds/$target
  mkdir -p "$found" "$unpacked" "$seeds"
  [ ! -e "Fuzz/Corpus/$target.txt" ] || Fuzz/corpus.py unpack "Fuzz/Corpus/$target.txt" "$unpacked"
  export COFFER_FUZZ_TARGET="$target"
  if $minimize; then
    rm -rf "$build/merged" && mkdir -p "$build/merged"
    "$build/fuzzer" -merge=1 -max_len=4096 "$build/merged" "$unpacked" "$seeds" "$found" 2>&1 | tail -n 1
    Fuzz/corpus.py pack "$build/merged" "Fuzz/Corpus/$target.txt"
    continue
  fi
  echo "fuzzing $target"
  if ! "$build/fuzzer" "$budget" -max_len=4096 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$found" "$unpacked" "$seeds" >"$build/$target.log" 2>&1; then
    echo "FAILED: $target: see $build/$target.log and $build/findings"
    grep -E "broken rule|ERROR|Fatal" "$build/$target.log" | head -n 5
    status=1
  fi
  grep -E "^stat::number_of_executed_units|^#.*DONE|^count: " "$build/$target.log" || true
done
exit $status
