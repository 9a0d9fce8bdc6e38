// The ExpertRunners of a device that holds only some of the experts. All of them write down what
// was routed, for the policy; they differ in who goes through the layers.
//   WholeExperts      the device's work itself: the whole step is one submission, and waits inside
//   SegmentedExperts  the host, which submits a layer, waits for the CPU's rows, and submits the
//                     rest: for devices that may not wait inside a submission, and as the reference
//   StreamedExperts   the host, for steps of many rows: experts that are not resident come through
//                     two buffers while the others are computed
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "backend/device_ops.h"
#include "backend/mailbox.h"
#include "engine/device/expert_slots.h"
#include "engine/device/expert_staging.h"
#include "engine/device/host_experts.h"
#include "engine/step/routing_log.h"
#include "model/expert_runner.h"
#include "policy/trace/routing.h"

namespace sluice::engine {

// What the runners of one device share. Everything outlives them.
struct ExpertParts {
  backend::DeviceOps& ops;
  backend::Stream& main;
  backend::Stream& copies;
  backend::Mailbox& mailbox;
  const model::Model& model;  // as the device sees it
  const ExpertSlots& slots;
  HostExperts& host;
  ExpertCopies& demand;
  ExpertStaging& staging;
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
  void find(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
            int part = 0);
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
  // Whether so many bytes of experts, for so many pairs, come over the link rather than being
  // computed by the CPU.
  using Prefers = std::function<bool(uint64_t n_bytes, int64_t n_pairs, LayerId layer)>;

  // `buffers`: two halves in one piece of device memory.
  StreamedExperts(const ExpertParts& parts, backend::Device& device, RoutingLog& log,
                  SegmentedExperts& segmented, std::span<std::byte> buffers, Prefers prefers);
  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override;

  uint64_t streamed_bytes() const { return streamed_bytes_; }

 private:
  struct Half {
    std::byte* data = nullptr;
    std::unique_ptr<backend::Event> arrived, is_free;
  };
  struct Group {  // experts that are computed together
    std::vector<const std::byte*> table;
    std::vector<backend::ExpertPair> pairs;
  };

  void sort_pairs(LayerId layer, int32_t n_used);
  void submit(const backend::ExpertsView& experts, const Group& group,
              const backend::ExpertInputView& a, bool with_shared);
  void stream_group(LayerId layer, std::span<const int32_t> experts, Half& half, Group& group);

  const ExpertParts& p_;
  RoutingLog& log_;
  SegmentedExperts& segmented_;
  uint64_t half_bytes_;
  Half halves_[2];
  Prefers prefers_;
  std::vector<std::vector<backend::ExpertPair>> pairs_;  // by expert
  std::vector<int32_t> missing_;
  std::vector<Group> groups_;  // the first: what is resident
  uint64_t streamed_bytes_ = 0;
};

}  // namespace sluice::engine
