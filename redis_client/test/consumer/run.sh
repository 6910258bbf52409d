#!/bin/sh
# Installs the library, builds a consumer with CMake and one with pkg-config flags, and runs both.
#   run.sh build-directory c++-compiler
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/installed" > /dev/null
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_CXX_COMPILER="$2" > /dev/null
cmake --build "$work/build" > /dev/null
"$work/build/consumer"
pc="$(find "$work/installed" -name taskq-ratelimit.pc)"
flags() { sed -n "s|^$1: ||p" "$pc" | sed "s|\${includedir}|$work/installed/include|; s|\${libdir}|$(dirname "$(dirname "$pc")")|"; }
# shellcheck disable=SC2046
"$2" -std=c++20 "$here/main.cpp" $(flags Cflags) $(flags Libs) -o "$work/by_pkg_config"
"$work/by_pkg_config"
