#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_symbols.sh NUMBER OBJECT...: objects compiled for instructions that not every CPU has, of which there must be
# so many among the given ones, must not offer weak symbols.
# A linker keeps one of several copies of an inline function; if it kept theirs, the whole program would need their CPU.
set -eu
expected=$1
shift
found=0
for object in "$@"; do
  case $object in
    *avx512.cpp.o | *avx_vnni.cpp.o | *neon.cpp.o) ;;
    *) continue ;;
  esac
  found=$((found + 1))
  weak=$(nm --defined-only "$object" | grep -E ' [WVu] ' || true)
  if [ -n "$weak" ]; then
    echo "$object offers weak symbols:"
    echo "$weak"
    exit 1
  fi
done
[ "$found" -eq "$expected" ] || { echo "found $found objects of wider kernels; expected $expected"; exit 1; }
echo "no weak symbols in $found objects"
