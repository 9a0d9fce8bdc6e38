// How many bytes copies ahead of their layer may still carry for nothing. Copied on demand, every
// miss would cross the link once; what copies ahead move beyond that is waste, and it may be
// `max_waste` of the missed bytes. Bytes in, a verdict out: no link and no clock in here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace sluice::policy {

class WasteAllowance {
 public:
  // max_waste: share of the missed bytes. most_bytes: the highest that the allowance gets.
  WasteAllowance(double max_waste, double most_bytes)
      : max_waste_(max_waste), most_bytes_(most_bytes) {}

  // A layer was looked up: it missed so many bytes, and since the last one the link has carried so
  // many. The allowance is capped, so unused allowance from earlier steps cannot pay for a burst of
  // wrong copies now. It may become negative: then nothing is copied ahead until it has recovered.
  void account(double missed_bytes, double carried_bytes) {
    bytes_ = std::min(bytes_ + (1.0 + max_waste_) * missed_bytes - carried_bytes, most_bytes_);
  }

  bool allows(double wasted_bytes) const { return wasted_bytes <= bytes_; }

 private:
  double max_waste_;
  double most_bytes_;
  double bytes_ = 0.0;
};

}  // namespace sluice::policy
