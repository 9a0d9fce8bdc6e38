// Mirostat (Basu et al., 2021): steers the text to a steady surprise of tau bits a token. It cuts
// off the tail of the distribution, and learns from each token it gets where to cut next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sampler/candidates.h"

namespace sluice::sampler {

class Mirostat {
 public:
  // version 1 or 2.
  Mirostat(int version, double tau, double eta) : version_(version), tau_(tau), eta_(eta) {
    reset();
  }

  void truncate(Candidates& candidates, size_t n_vocab) const;
  // A token was taken that had probability p among those which truncate() left.
  void observe(double p);
  void reset() { mu_ = 2.0 * tau_; }
  double mu() const { return mu_; }  // the surprise to cut at, in bits

 private:
  int version_;
  double tau_;
  double eta_;
  double mu_ = 0.0;
};

}  // namespace sluice::sampler
