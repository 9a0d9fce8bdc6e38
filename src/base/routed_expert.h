// An expert that a router chose for a row. Devices write them down as they stand here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"

namespace sluice {

struct RoutedExpert {
  ExpertId expert;
  float weight = 0.0f;  // its gate
  friend bool operator==(RoutedExpert, RoutedExpert) = default;
};

}  // namespace sluice
