// Does nothing: the target test_headers holds the precompiled headers of all tests and needs a
// source.
// SPDX-License-Identifier: Apache-2.0
int main() { return 0; }
