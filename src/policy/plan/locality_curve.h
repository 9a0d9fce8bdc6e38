// Which experts a text finds in VRAM: the share of calls, by the share of experts that are there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "policy/trace/routing_profile.h"

namespace sluice::policy {

// Of a decode step: a row of each of several sequences, or several of one that are verified
// together. Neither is a prompt.
struct DecodeRows {
  int n_rows = 1;
  int n_sequences = 1;
};

// Which share of a layer's routed calls finds its expert in VRAM, by the share of its experts that
// are there: straight lines between the points, from (0, 0) to (1, 1).
class LocalityCurve {
 public:
  struct Point {
    double resident;
    double hits;
    double copies = 0.0;  // for each call that misses: what the cache brings in
  };

  // The best online policy on recorded Qwen3-30B-A3B routing (8 of 128 experts): 43, 63, 75, 83 and
  // 92 % at 6.25, 12.5, 18.8, 25 and 37.5 %. Above that the recording is too short (28 + 128 tokens
  // in which most experts are new), and it is the replay of 1,260 generated tokens after 768
  // others; so are copies. A replay from slots that were filled with any experts has as many hits
  // from the 256th token on, to 1 %. A profile of the user's own texts replaces it.
  static LocalityCurve typical();

  // What the profile's own text would have hit, had the experts it used most been in VRAM from the
  // start: the mean of its layers. A cache that follows the text does a little better. It has
  // steps.
  static LocalityCurve of(const RoutingProfile& profile);

  // Points strictly rising in `resident`, never falling in `hits`, all inside (0, 1).
  explicit LocalityCurve(std::vector<Point> points);

  double hits(double resident) const;
  double copies(double resident) const;  // for each call that misses

  // How many experts a layer reads for several rows at once, on average: in VRAM and elsewhere.
  // Of a profile, each expert is met as often as its texts met it. Else rows choose evenly, and
  // sequences have other texts: each finds its own in its share of the slots, and in those of the
  // others what is there by chance. One row: n_used, by hits().
  struct Distinct {
    double hits;
    double misses;
    double sum() const { return hits + misses; }
  };
  struct Choice {
    int n_used;
    int n_experts;
  };
  Distinct distinct(double resident, const DecodeRows& rows, Choice choice) const;

 private:
  double at(double resident, double Point::*figure) const;

  std::vector<Point> points_;
  bool is_popularity_ =
      false;  // the curve sums up how often experts are chosen, the most used first
};

}  // namespace sluice::policy
