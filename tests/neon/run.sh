#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh QEMU PROGRAM OBJECT: kernels_test on two ARM cores. One has dot products and nothing newer, so its kernels must
# be there and right. The other lacks them: the scalar reference must be all there is, and would a kernel run all the
# same, its first dot product would end the program. OBJECT is what neon.cpp became.
set -eu
qemu=$1 program=$2 object=$3

"$(dirname "$0")/../kernel_symbols.sh" 1 "$object"
SLUICE_BEST_KERNELS='NEON dotprod' "$qemu" -cpu neoverse-n1 "$program"
SLUICE_BEST_KERNELS=scalar "$qemu" -cpu cortex-a57 "$program" --gtest_filter='Kernels.The*:Kernels.Experts*'
