#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# keep_ptxas_report.sh COMPILER ARGUMENT...: runs nvcc, and keeps what ptxas reports of each kernel in OBJECT.ptxas,
# where tests/gpu/ptxas_report.py reads it. What else nvcc says comes through.
object=
previous=
for argument in "$@"; do
  [ "$previous" != -o ] || object=$argument
  previous=$argument
done
[ -n "$object" ] || { echo "keep_ptxas_report.sh: no -o among: $*" >&2; exit 2; }

said=$object.ptxas
"$@" 2>"$said"
status=$?
grep -v -e '^ptxas info' -e '^ *[0-9]* bytes stack frame' "$said" >&2
exit $status
