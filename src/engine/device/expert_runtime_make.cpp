// How an ExpertRuntime (expert_runtime.h) is made: its memory as the planner priced it, what of the
// trunk is the host's and what the device's, and the experts that are there from the start.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/host_memory.h"
#include "base/carver.h"
#include "base/check.h"
#include "engine/device/expert_runtime.h"

namespace sluice::engine {
namespace {

// Layers whose experts the device cannot get at keep none there: a size of 0 is a pool of its own,
// without slots. Where there is room for all, all come at the start.
policy::CacheOptions reachable(policy::CacheOptions cache, const HostExperts& host) {
  for (size_t i = 0; i < cache.layers.size(); ++i) {
    cache.layers[i].pinned |= !host.is_needed();
    if (host.is_copyable(LayerId(static_cast<int32_t>(i)))) continue;
    cache.layers[i] = {};
  }
  return cache;
}

backend::Allocate mapped_memory(backend::Device& device) {
  return [&device](uint64_t n) { return device.allocate(backend::MemoryKind::mapped, n); };
}

static_assert(sizeof(backend::PickedRow) == kPickedRowBytes);

uint64_t floats(int64_t n) { return static_cast<uint64_t>(n) * sizeof(float); }

}  // namespace

ExpertRuntime::ExpertRuntime(RegisteredExperts& experts, const policy::ModelShape& shape,
                             backend::Device& device, ThreadPool& host_threads,
                             const ExpertRuntimeOptions& options)
    : model_(experts.model()),
      shape_(shape),
      device_(device),
      host_threads_(host_threads),
      options_(options),
      price_(policy::price(shape, options.work, options.place)),
      mailbox_(device, policy::mailbox_size(shape, options.work)),
      logits_out_(device.allocate(
          backend::MemoryKind::mapped,
          floats(int64_t{std::min(max_rows(), kMaxLogitRows)} * model_.config().n_vocab))),
      picks_out_(device.allocate(
          backend::MemoryKind::mapped,
          static_cast<uint64_t>(std::min(max_rows(), kMaxLogitRows)) * kPickedRowBytes)),
      wave_memory_(
          device.allocate(backend::MemoryKind::mapped,
                          wave_bytes(model_.config().n_layers, model_.config().n_experts))),
      landed_memory_(device.allocate(backend::MemoryKind::mapped, lines(kLandingPlaces, 8))),
      log_(mapped_memory(device), model_.config().n_layers, max_rows(),
           model_.config().n_experts_used),
      forced_(mapped_memory(device), model_.config(), max_rows(), options.reroute),
      arena_(device, price_.vram.total() - price_.vram.cuda),
      slot_memory_(arena_, price_.vram.slots),
      staging_memory_(arena_, price_.vram.staging),
      kv_memory_(arena_, price_.vram.kv),
      state_memory_(arena_, price_.vram.state),
      trunk_memory_(arena_, price_.vram.trunk),
      output_memory_(arena_, price_.vram.output),
      tables_(arena_, price_.vram.tables),
      scratch_(arena_, price_.vram.scratch),
      block_(device, policy::step_block_size(shape, options.work), scratch_),
      host_(experts, device, n_host_layers(), !has_all_experts(), options.held_link_gbps),
      cache_(reachable(options.cache, host_)),
      upload_(std::make_unique<Upload>(device, host_threads,
                                       price_.vram.trunk + price_.vram.output + price_.vram.slots,
                                       options.progress)),
      trunk_(model_, n_host_layers(), {trunk_memory_, output_memory_}, *upload_, options.weaves),
      slots_(model_, cache_, slot_memory_, tables_),
      main_(device.make_stream("main")),
      copy_stream_(device.make_stream("expert copies")),
      copies_(device, *main_, *copy_stream_, slots_, host_, cache_, options.copies),
      worker_(model_, host_threads, mailbox_, options.misses),
      rows_(options.work.n_held(), options.work.n_ctx, model_.rope()) {
  CHECK(options.logs ||
        std::ranges::all_of(options.cache.layers, [](const auto& l) { return l.pinned; }));
  CHECK(!options.weaves || has_all_experts());
  sum_.layers.resize(model_.layers().size());
  make_host_part(host_threads);
  make_device_part();
  load_first_experts();
}

// Streams end before what their work uses: copies may still be under way.
ExpertRuntime::~ExpertRuntime() {
  copy_stream_.reset();
  main_.reset();
}

void ExpertRuntime::make_host_part(ThreadPool& threads) {
  HostPart& h = host_part_;
  h.ops = backend::make_cpu_ops(threads);
  h.resident = std::make_unique<ResidentExperts>(*h.ops, model_);
  h.experts = std::make_unique<WatchedExperts>(*h.resident, log_);
  if (n_host_layers() == 0) return;
  h.kv = std::make_unique<KvCache>(memory_of(*h.ops), model_.config(),
                                   kv_options(options_.work, 0, n_host_layers()));
  h.activations =
      std::make_unique<ActivationsBuffer>(memory_of(*h.ops), model_, max_rows(), InputRows::given);
}

void ExpertRuntime::make_device_part() {
  const OpsSize size = policy::ops_size(shape_, max_rows());
  const uint64_t n_scratch = ops_scratch_bytes(size);
  ops_ = device_.make_ops(*main_, mailbox_.view(), std::span(scratch_.take(n_scratch), n_scratch));
  ops_->reserve(size);
  kv_ = std::make_unique<KvCache>(
      kv_memory_.allocator(), model_.config(),
      kv_options(options_.work, n_host_layers(), options_.place.n_gpu_layers));
  caches_.push_back(kv_.get());
  if (host_part_.kv) caches_.push_back(host_part_.kv.get());
  kv_layers_.resize(model_.layers().size());
  std::ranges::copy(kv_->layers(), kv_layers_.begin() + n_host_layers());
  make_states();
  activations_ = std::make_unique<ActivationsBuffer>(scratch_.allocator(), model_, max_rows(),
                                                     InputRows::given);
  link_share_ = static_cast<float>(options_.place.link_share);
  staging_ = std::make_unique<ExpertStaging>(
      device_, trunk_.model(), std::move(staging_memory_),
      ExpertStaging::Parts{host_, cache_, *copy_stream_, copies_, log_},
      std::min(max_rows(), kNarrowRows), options_.staging);
  uint64_t n_stream = price_.host.experts > 0 ? policy::stream_bytes(shape_) : 0;
  if (options_.stream_bytes > 0) n_stream = std::min(n_stream, options_.stream_bytes);
  const std::span stream_buffer(scratch_.take(n_stream), n_stream);
  const int n_layers = model_.config().n_layers;
  landing_.emplace(
      *main_, n_layers,
      ExpertLanding::Memory{stream_buffer, largest_slot(), tables_.take(landing_bytes(n_layers)),
                            std::move(landed_memory_)});
  parts_.emplace(ExpertParts{.ops = *ops_,
                             .main = *main_,
                             .mailbox = mailbox_,
                             .model = trunk_.model(),
                             .slots = slots_,
                             .host = host_,
                             .staging = *staging_,
                             .landing = *landing_,
                             .link_share = block_.link_share(),
                             .step = block_.step(),
                             .n_live = block_.n_live(),
                             .logs = options_.logs});
  whole_.emplace(*parts_, log_);
  segmented_.emplace(*parts_, *whole_);
  waves_.emplace(device_, model_,
                 ExpertWaves::Parts{*main_, *copy_stream_, slots_, host_, cache_, log_},
                 stream_buffer, std::move(wave_memory_));
  streamed_.emplace(*parts_, log_, *segmented_, *waves_, make_pair_lists());
}

uint64_t ExpertRuntime::largest_slot() const {
  uint64_t most = policy::kTensorAlignment;
  for (const policy::LayerShape& layer : shape_.layers) {
    most = std::max(most, policy::slot_bytes(layer));
  }
  return most;
}

void ExpertRuntime::make_states() {
  const int n_layers = model_.config().n_layers;
  const RecurrentStates::Part parts[] = {
      {memory_of(*host_part_.ops), 0, n_host_layers()},
      {state_memory_.allocator(), n_host_layers(), n_layers},
  };
  states_ = std::make_unique<RecurrentStates>(parts, model_, options_.work.n_held());
  for (const backend::StateLayerView& layer : states_->layers()) {
    state_layers_.push_back(block_.states(layer));
  }
}

backend::SortedPairs ExpertRuntime::make_pair_lists() {
  const model::Config& c = model_.config();
  const uint64_t n_bytes = pair_list_bytes(max_rows(), c.n_experts_used, c.n_experts);
  Carver carver(scratch_.take(n_bytes));
  const backend::SortedPairs lists{
      .n_used = c.n_experts_used,
      .first = carver.take<int32_t>(c.n_experts + 1),
      .slots = carver.take<int32_t>(int64_t{max_rows()} * c.n_experts_used)};
  CHECK(carver.n_bytes() == n_bytes);
  return lists;
}

void ExpertRuntime::upload_experts(std::span<const policy::Move> moves) {
  for (const policy::Move& move : moves) {
    const model::Layer& layer = model_.layers()[static_cast<size_t>(move.in.layer.value)];
    std::byte* const slot = slots_.slot(move.pool, move.slot);
    copy_expert(layer.experts, move.in.expert.value, slot, *upload_, options_.weaves);
    slots_.publish(move.in, slot);
  }
}

// All at once where none will ever follow them; else a few at a time, so that a person sees them
// come.
void ExpertRuntime::load_first_experts() {
  // From a file that is only mapped nothing is read before it is asked for.
  const bool is_in_ram = host_.n_registered() == options_.place.n_gpu_layers;
  std::span<const policy::Move> moves =
      cache_.fill(options_.profile, is_in_ram ? policy::Unprofiled::any : policy::Unprofiled::none);
  if (has_all_experts()) upload_experts(std::exchange(moves, {}));
  upload_->finish();
  uploaded_bytes_ = upload_->n_bytes();
  upload_seconds_ = upload_->seconds();
  upload_.reset();
  constexpr size_t kTogether = 64;
  for (size_t begin = 0; begin < moves.size(); begin += kTogether) {
    copies_.boundary(moves.subspan(begin, std::min(kTogether, moves.size() - begin)));
    copies_.finish();
    if (options_.progress) {
      const uint64_t n_total = uploaded_bytes_ + price_.vram.slots;
      const uint64_t n_done = uploaded_bytes_ + copies_.copied_bytes();
      options_.progress(std::min(n_done, n_total), n_total);
    }
  }
  copies_.finish();
}

}  // namespace sluice::engine
