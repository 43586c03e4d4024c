#!/usr/bin/env bash
# Compiles the C targets, and the module that gives the C library, against the headers of Debian's musl-dev.
#
# usage: Tests/System/musl/headers.sh
#
# Exit status: 0 all of it compiles, 1 something does not or musl-dev is missing, 64 wrong usage.
set -euo pipefail
[ $# = 0 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 64; }
cd "$(dirname "$0")/../../.."
headers=/usr/include/$(uname -m)-linux-musl
[ -e "$headers/unistd.h" ] || { echo "There are no headers of musl in $headers: install musl-dev." >&2; exit 1; }
target=$(uname -m)-swift-linux-musl
compiler=$(clang -print-resource-dir)/include
for source in Sources/CLinux/CLinux.c Sources/CEarlyInit/CEarlyInit.c; do
  clang -fsyntax-only -Wall -Werror --target="$target" -nostdinc -isystem "$compiler" -isystem "$headers" \
    -I Sources/CLinux/include -I Sources/CEarlyInit/include "$source"
done
# A module as Swift's SDK for musl has it, of a few headers.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'module Musl [system] { header "all.h" export * }\n' >"$work/module.modulemap"
printf '#include <%s>\n' errno.h fcntl.h pthread.h sys/stat.h unistd.h >"$work/all.h"
swiftc -typecheck -target "$target" -parse-stdlib -parse-as-library -I "$work" -Xcc -nostdlibinc -Xcc -isystem -Xcc "$headers" \
  Sources/CofferLibc/Libc.swift 2>&1 | { ! grep -v 'libc not found'; }
echo "The C targets and CofferLibc compile against musl."
