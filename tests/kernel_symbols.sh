#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kernel_symbols.sh OBJECT...: objects compiled for instructions that not every CPU has must not offer weak symbols.
# A linker keeps one of several copies of an inline function; if it kept theirs, the whole program would need their CPU.
set -eu
found=0
for object in "$@"; do
  case $object in
    *avx512.cpp.o | *avx_vnni.cpp.o) ;;
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
[ "$found" -eq 3 ] || { echo "found $found objects of wider kernels; expected 3"; exit 1; }
echo "no weak symbols in $found objects"
