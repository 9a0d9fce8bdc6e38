# The grammar that makes every word the demo models learn from. Pure Python, seeded, no packages.
# SPDX-License-Identifier: Apache-2.0
