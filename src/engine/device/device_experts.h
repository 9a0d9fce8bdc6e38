// The ExpertRunners of a device that holds only some of the experts. All of them write down what
// was routed, for the policy; they differ in who goes through the layers.
//   WholeExperts      the device's work itself: the whole step is one submission, and waits inside
//   SegmentedExperts  the host, which submits a layer, waits for the CPU's rows, and submits the
//                     rest: for devices that may not wait inside a submission, and as the reference
//   StreamedExperts   the device's work again, for steps of many rows: their pairs are sorted by
//                     expert, and what is not resident comes in waves (expert_waves.h); layers
//                     whose experts the CPU computes are segmented
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device_ops.h"
#include "backend/mailbox.h"
#include "engine/device/expert_landing.h"
#include "engine/device/expert_slots.h"
#include "engine/device/expert_staging.h"
#include "engine/device/expert_waves.h"
#include "engine/device/host_experts.h"
#include "engine/step/routing_log.h"
#include "model/expert_runner.h"

namespace sluice::engine {

// What the runners of one device share. Everything outlives them.
struct ExpertParts {
  backend::DeviceOps& ops;
  backend::Stream& main;
  backend::Mailbox& mailbox;
  const model::Model& model;  // as the device sees it
  const ExpertSlots& slots;
  HostExperts& host;
  ExpertStaging& staging;
  const ExpertLanding& landing;
  const float* link_share = nullptr;  // in the device's memory, as the next two
  const uint32_t* step = nullptr;     // its number
  const int32_t* n_live = nullptr;    // rows of it
  bool logs = true;                   // else nobody reads what a whole step routed
};

class WholeExperts final : public model::ExpertRunner {
 public:
  WholeExperts(const ExpertParts& parts, RoutingLog& log) : p_(parts), log_(log) {}
  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override;

  // What stands before the computing: the lookup, of all rows or a part of them; and what a later
  // layer will ask for.
  struct Part {
    int index = 0;
    bool is_all = true;
  };
  void find(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
            Part part);
  void foresee(LayerId layer, backend::ConstRowsView x);

 private:
  const ExpertParts& p_;
  RoutingLog& log_;
};

class SegmentedExperts final : public model::ExpertRunner {
 public:
  SegmentedExperts(const ExpertParts& parts, WholeExperts& whole) : p_(parts), whole_(whole) {}
  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override;

 private:
  const ExpertParts& p_;
  WholeExperts& whole_;
};

class StreamedExperts final : public model::ExpertRunner {
 public:
  // `pairs`: the device's memory for one layer's.
  StreamedExperts(const ExpertParts& parts, RoutingLog& log, SegmentedExperts& segmented,
                  ExpertWaves& waves, const backend::SortedPairs& pairs)
      : p_(parts), log_(log), segmented_(segmented), waves_(waves), pairs_(pairs) {}
  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override;

 private:
  void keep_close(LayerId layer) const;

  const ExpertParts& p_;
  RoutingLog& log_;
  SegmentedExperts& segmented_;
  ExpertWaves& waves_;
  backend::SortedPairs pairs_;
};

}  // namespace sluice::engine
