// Nothing: the target test_headers needs a source to hold the precompiled headers of all tests.
// SPDX-License-Identifier: Apache-2.0
