// See calibration.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/calibration.h"

#include <algorithm>

#include "backend/cpu/host_memory.h"
#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "engine/device/expert_runtime.h"
#include "engine/machine/handshake.h"
#include "engine/machine/step_costs.h"
#include "engine/machine/text_routing.h"
#include "engine/step/activations.h"
#include "policy/plan/fitted_rates.h"
#include "quant/activation.h"

namespace sluice::engine {
namespace {

using backend::MemoryKind;

constexpr uint64_t kSeed = 1;
constexpr double kGiga = 1e9;
// More than caches hold, in copies large enough that the start of one does not count.
constexpr uint64_t kRingBytes = 64 * kMiB;
constexpr uint64_t kLeastRingBytes = kMiB;
constexpr uint64_t kCopyBytes = 4 * kMiB;
constexpr uint64_t kDeviceBytes = kGiB;
constexpr int kCopiesTogether = 4;
constexpr size_t kMostChoices = 32;  // on the device

template <typename Work>
double seconds_of(const Work& work) {
  const double start = wall_seconds();
  work();
  return wall_seconds() - start;
}

// Again and again, at least once.
template <typename Work>
void repeat_for(double seconds, const Work& work) {
  const double end = wall_seconds() + seconds;
  do work();
  while (wall_seconds() < end);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

double gbps(uint64_t n_bytes, double seconds) {
  return static_cast<double>(n_bytes) / std::max(seconds, 1e-9) / kGiga;
}

// All of it, or half, or a quarter; empty where the device has not even `least`.
backend::Buffer allocate_some(backend::Device& device, MemoryKind kind, uint64_t n_bytes,
                              uint64_t least) {
  for (; n_bytes >= least && n_bytes > 0; n_bytes /= 2) {
    try {
      return device.allocate(kind, n_bytes);
    } catch (const Error& e) {
      if (e.code() != Errc::out_of_memory) throw;
    }
  }
  return {};
}

// Copies from pinned memory to the device's, from places that were not copied lately.
class CopyRing {
 public:
  explicit CopyRing(backend::Device& device)
      : own_(allocate_some(device, MemoryKind::device, kRingBytes, kLeastRingBytes)),
        pinned_(allocate_some(device, MemoryKind::pinned, own_.n_bytes(), kLeastRingBytes)),
        copy_bytes_(std::min(pinned_.n_bytes(), kCopyBytes)) {
    std::fill_n(pinned_.data(), pinned_.n_bytes(), std::byte{1});  // or no page is there to be read
  }

  uint64_t copy_bytes() const { return copy_bytes_; }  // 0: there is no room

  void copy(backend::Stream& stream) {
    if (at_ + copy_bytes_ > pinned_.n_bytes()) at_ = 0;
    stream.copy(own_.data() + at_, pinned_.data() + at_, copy_bytes_);
    at_ += copy_bytes_;
  }

 private:
  backend::Buffer own_, pinned_;
  uint64_t copy_bytes_;
  uint64_t at_ = 0;
};

// Experts of a layer that one row might have chosen. The shared one is not among them.
struct ChosenExperts {
  backend::ExpertsView experts;
  LayerId layer;
  std::vector<backend::ExpertPair> pairs;
  backend::SortedPairs sorted = {};  // the same, on the device
  backend::Buffer lists = {};        // mapped: of those, and where the experts stand

  uint64_t n_bytes() const { return pairs.size() * backend::ExpertLayout(experts).n_bytes; }
};

class Calibration {
 public:
  Calibration(const model::Model& model, backend::Device& device, ThreadPool& threads,
              double seconds);

  void measure_cpu();
  void measure_link();  // alone, and beside the cores
  void measure_device();
  void measure_memory();
  void measure_handshake();
  void measure_step();
  void measure_graphs();

  MachineRates rates = unmeasured_rates();

 private:
  double next_share() { return std::max(end_ - wall_seconds(), 0.0) / n_shares_--; }
  ChosenExperts choose(int n_experts);
  backend::MailboxShape mailbox_shape() const { return {1, 1, model_.config().d_model}; }
  void compute(const ChosenExperts& choice) {
    cpu_.compute(choice.experts, choice.pairs, input_, out_.data());
  }
  void measure_both(CopyRing& ring, backend::Stream& stream);
  void copy_to_device(const backend::ExpertInputView& to, backend::Stream& stream) const;
  std::span<const std::byte*> make_lists(ChosenExperts& choice);
  std::vector<ChosenExperts> copy_experts(std::byte* room, uint64_t n_bytes,
                                          backend::Stream& stream);
  std::vector<ChosenExperts> first_of(std::span<const ChosenExperts> choices);

  const model::Model& model_;
  const int n_used_;
  backend::Device& device_;
  ThreadPool& threads_;
  const double budget_, end_;
  int n_shares_ = 6;
  TextRouting text_;
  int layer_ = 0;  // that chooses next
  ActivationsBuffer activations_;
  backend::ExpertInputView input_;
  std::vector<float> out_;
  backend::cpu::Experts cpu_;
  double choice_seconds_ = 0.0;  // of the cores, for one
};

Calibration::Calibration(const model::Model& model, backend::Device& device, ThreadPool& threads,
                         double seconds)
    : model_(model),
      n_used_(model.config().n_experts_used),
      device_(device),
      threads_(threads),
      budget_(seconds),
      end_(wall_seconds() + seconds),
      text_(model.config(), nullptr),
      activations_(backend::allocate_host, model, 1),
      input_(activations_.view(1).expert_input),
      out_(static_cast<size_t>(n_used_) * static_cast<size_t>(model.config().d_model)),
      cpu_(threads, backend::cpu::best_kernels()) {
  std::vector<float> x(static_cast<size_t>(input_.n_cols));
  for (size_t i = 0; i < x.size(); ++i) x[i] = random_signed(random_bits(kSeed, i));
  if (input_.f32) std::ranges::copy(x, input_.f32);
  if (input_.q) quant::quantize_activation(x, input_.q, input_.d, input_.y);
}

// The best n_experts of the next layer, and after the last one those of the next token.
ChosenExperts Calibration::choose(int n_experts) {
  if (layer_ == model_.config().n_layers) layer_ = 0, text_.next_token();
  const model::Layer& layer = model_.layers()[static_cast<size_t>(layer_++)];
  ChosenExperts choice{.experts = layer.experts, .layer = layer.id, .pairs = {}};
  choice.experts.shared_gate = {};
  for (const int32_t e : text_.experts(layer.id).first(static_cast<size_t>(n_experts))) {
    choice.pairs.push_back({e, 0, static_cast<int32_t>(choice.pairs.size())});
  }
  return choice;
}

void Calibration::measure_cpu() {
  std::vector<double> speeds, seconds;
  repeat_for(next_share(), [&] {
    const ChosenExperts choice = choose(n_used_);
    seconds.push_back(seconds_of([&] { compute(choice); }));
    speeds.push_back(gbps(choice.n_bytes(), seconds.back()));
  });
  rates.cpu_gbps = median(speeds);
  choice_seconds_ = median(seconds);
}

void Calibration::measure_link() {
  CopyRing ring(device_);
  const auto stream = device_.make_stream("calibration");
  const double share = next_share();
  if (ring.copy_bytes() == 0) return;
  std::vector<double> speeds;
  repeat_for(share, [&] {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kCopiesTogether; ++i) ring.copy(*stream);
      stream->finish();
    });
    speeds.push_back(gbps(kCopiesTogether * ring.copy_bytes(), seconds));
  });
  rates.link_gbps = median(speeds);
  measure_both(ring, *stream);
}

// The cores compute for as long as the copies last.
void Calibration::measure_both(CopyRing& ring, backend::Stream& stream) {
  constexpr double kChoices = 20.0;  // or more: the last one's end does not count
  constexpr double kLeastSeconds = 0.02;
  const double share = next_share();
  const double wish = std::min(std::max(kChoices * choice_seconds_, kLeastSeconds), share / 4);
  const auto n_copies =
      1 + static_cast<uint64_t>(wish * rates.link_gbps * kGiga) / ring.copy_bytes();
  const auto end_of_copies = device_.make_event();
  std::vector<double> link_rates, cpu_rates;
  repeat_for(share, [&] {
    uint64_t cpu_bytes = 0;
    const double seconds = seconds_of([&] {
      for (uint64_t i = 0; i < n_copies; ++i) ring.copy(stream);
      stream.record(*end_of_copies);
      do {
        const ChosenExperts choice = choose(n_used_);
        compute(choice);
        cpu_bytes += choice.n_bytes();
      } while (!end_of_copies->is_done());
    });
    stream.finish();
    link_rates.push_back(gbps(n_copies * ring.copy_bytes(), seconds));
    cpu_rates.push_back(gbps(cpu_bytes, seconds));
  });
  rates.copy_interference =
      std::clamp((rates.cpu_gbps - median(cpu_rates)) / median(link_rates), 0.0, 1.0);
}

void Calibration::copy_to_device(const backend::ExpertInputView& to,
                                 backend::Stream& stream) const {
  const auto copy = [&](auto* target, const auto* from, int64_t n) {
    if (!target) return;
    stream.copy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(from),
                static_cast<uint64_t>(n) * sizeof(*from));
  };
  copy(to.f32, input_.f32, to.n_cols);
  copy(to.q, input_.q, to.n_cols);
  copy(to.d, input_.d, to.n_cols / 32);
  copy(to.y, input_.y, to.n_cols / 32);
}

// One row's pairs, sorted; and its table, to be filled in.
std::span<const std::byte*> Calibration::make_lists(ChosenExperts& choice) {
  const auto n_experts = static_cast<size_t>(choice.experts.gate.n_mats);
  const size_t n_table = n_experts * sizeof(std::byte*);
  const size_t n_lists = (n_experts + 1 + choice.pairs.size()) * sizeof(int32_t);
  choice.lists = device_.allocate(MemoryKind::mapped, n_table + n_lists);
  const std::span table(choice.lists.as<const std::byte*>(), n_experts);
  std::ranges::fill(table, nullptr);
  auto* const first = reinterpret_cast<int32_t*>(choice.lists.data() + n_table);
  choice.sorted = {n_used_, first, first + n_experts + 1};
  std::vector<backend::ExpertPair> pairs = choice.pairs;
  std::ranges::sort(pairs, {}, &backend::ExpertPair::expert);
  int32_t n = 0;
  for (int32_t e = 0; e <= static_cast<int32_t>(n_experts); ++e) {
    first[e] = n;
    for (; n < std::ssize(pairs) && pairs[static_cast<size_t>(n)].expert == e; ++n) {
      choice.sorted.slots[n] = pairs[static_cast<size_t>(n)].slot;
    }
  }
  return table;
}

// A few choices, as there is room for them; where there is room for none, a part of one.
std::vector<ChosenExperts> Calibration::copy_experts(std::byte* room, uint64_t n_bytes,
                                                     backend::Stream& stream) {
  std::vector<ChosenExperts> all;
  while (all.size() < kMostChoices) {
    ChosenExperts choice = choose(n_used_);
    const uint64_t slot_bytes = backend::ExpertLayout(choice.experts).stride;
    const uint64_t n_fitting = std::min(n_bytes / slot_bytes, choice.pairs.size());
    if (n_fitting == 0 || (n_fitting < choice.pairs.size() && !all.empty())) break;
    choice.pairs.resize(n_fitting);
    const std::span<const std::byte*> table = make_lists(choice);
    for (const backend::ExpertPair& pair : choice.pairs) {
      copy_expert(choice.experts, pair.expert, room, stream);
      table[static_cast<size_t>(pair.expert)] = room;
      room += slot_bytes;
      n_bytes -= slot_bytes;
    }
    choice.experts.table = table.data();
    all.push_back(std::move(choice));
  }
  return all;
}

// The first expert of each choice alone.
std::vector<ChosenExperts> Calibration::first_of(std::span<const ChosenExperts> choices) {
  std::vector<ChosenExperts> singles;
  for (const ChosenExperts& choice : choices) {
    ChosenExperts one{.experts = choice.experts, .layer = choice.layer, .pairs = {choice.pairs[0]}};
    const std::span<const std::byte*> table = make_lists(one);
    const auto expert = static_cast<size_t>(one.pairs[0].expert);
    table[expert] = choice.experts.table[expert];
    one.experts.table = table.data();
    singles.push_back(std::move(one));
  }
  return singles;
}

void Calibration::measure_device() {
  const double share = next_share();
  const backend::Allocate own_memory = [this](uint64_t n) {
    return device_.allocate(MemoryKind::device, n);
  };
  const ActivationsBuffer activations(own_memory, model_, 1);
  const backend::ExpertInputView input = activations.view(1).expert_input;
  uint64_t largest = 0;
  for (const model::Layer& layer : model_.layers()) {
    largest = std::max(largest, backend::ExpertLayout(layer.experts).stride);
  }
  // What crosses the link in a part of the time, and no more than it takes; but one expert, however
  // slow the link is beside other work.
  const auto crossing = static_cast<uint64_t>(rates.link_gbps * kGiga * budget_ / 20);
  const uint64_t wish = std::max(kRingBytes, static_cast<uint64_t>(n_used_) * largest);
  const backend::Buffer room =
      allocate_some(device_, MemoryKind::device, std::clamp(crossing, largest, wish), largest);
  const auto stream = device_.make_stream("calibration");  // ends before what its work uses
  copy_to_device(input, *stream);
  const std::vector<ChosenExperts> choices = copy_experts(room.data(), room.n_bytes(), *stream);
  stream->finish();
  if (choices.empty()) return;

  uint64_t n_bytes = 0;
  for (const ChosenExperts& choice : choices) n_bytes += choice.n_bytes();
  backend::Mailbox mailbox(device_, mailbox_shape());
  const uint64_t n_scratch =
      static_cast<uint64_t>(n_used_ * model_.config().d_model) * sizeof(float);
  const backend::Buffer scratch = device_.allocate(MemoryKind::device, n_scratch);
  const auto ops = device_.make_ops(*stream, mailbox.view(), {scratch.data(), n_scratch});
  // All that a row uses, and one of them: what the two have in common is not read.
  const std::vector<ChosenExperts> singles = first_of(choices);
  const auto seconds_for = [&](std::span<const ChosenExperts> all) {
    const double seconds = seconds_of([&] {
      for (const ChosenExperts& choice : all) {
        ops->compute_sorted(choice.experts, choice.sorted, input);
      }
      stream->finish();
    });
    return seconds / static_cast<double>(all.size());
  };
  std::vector<double> of_all, of_one;
  repeat_for(share / 2, [&] {
    of_all.push_back(seconds_for(choices));
    of_one.push_back(seconds_for(singles));
  });
  const double expert_bytes =
      static_cast<double>(n_bytes) / static_cast<double>(choices.size() * choices[0].pairs.size());
  const policy::ExpertCost cost = policy::fit_experts(
      {1, median(of_one)}, {static_cast<int>(choices[0].pairs.size()), median(of_all)},
      expert_bytes);
  rates.gpu_gbps = cost.gbps;
  rates.experts_us = cost.fixed_us;
}

void Calibration::measure_step() {
  const StepCosts costs = measure_step_costs(device_, next_share());
  rates.launch_us = costs.launch_us;
  rates.readback_us = costs.readback_us;
  rates.sampling_us = costs.sampling_us;
}

void Calibration::measure_graphs() {
  rates.graphs_mib = measure_recordings(device_, model_.config().n_layers);
}

// Copies within it, larger than its caches, read and write every byte once.
void Calibration::measure_memory() {
  const double share = next_share();
  const backend::Buffer room =
      allocate_some(device_, MemoryKind::device, kDeviceBytes, kLeastRingBytes);
  const uint64_t n_bytes = room.n_bytes() / 2;
  if (n_bytes == 0) return;
  const auto stream = device_.make_stream("calibration");
  std::vector<double> speeds;
  repeat_for(share, [&] {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kCopiesTogether; ++i) {
        stream->copy(room.data() + n_bytes, room.data(), n_bytes);
      }
      stream->finish();
    });
    speeds.push_back(gbps(2 * kCopiesTogether * n_bytes, seconds));
  });
  rates.gpu_gbps = median(speeds);
}

void Calibration::measure_handshake() {
  rates.handshake_us = measure_handshake_us(model_, device_, threads_, rates, next_share());
}

using Measure = void (Calibration::*)();

MachineRates measure_all(Calibration& calibration, std::span<const Measure> measures) {
  for (const Measure measure : measures) {
    try {
      (calibration.*measure)();
    } catch (const Error& e) {
      if (e.code() != Errc::out_of_memory) throw;  // the device is too small: not measured
    }
  }
  return calibration.rates;
}

}  // namespace

MachineRates calibrate(const model::Model& model, backend::Device& device, ThreadPool& host_threads,
                       double budget_seconds) {
  Calibration calibration(model, device, host_threads, budget_seconds);
  constexpr Measure kMeasures[] = {&Calibration::measure_cpu, &Calibration::measure_link,
                                   &Calibration::measure_device, &Calibration::measure_handshake,
                                   &Calibration::measure_step};
  return measure_all(calibration, kMeasures);
}

MachineRates calibrate_gpu(const model::Model& model, backend::Device& device,
                           ThreadPool& host_threads, double budget_seconds) {
  Calibration calibration(model, device, host_threads, budget_seconds);
  constexpr Measure kMeasures[] = {&Calibration::measure_cpu,    &Calibration::measure_link,
                                   &Calibration::measure_memory, &Calibration::measure_handshake,
                                   &Calibration::measure_step,   &Calibration::measure_graphs};
  return measure_all(calibration, kMeasures);
}

}  // namespace sluice::engine
