// See ram_device.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_device.h"

#include <algorithm>

#include "backend/cpu/host_memory.h"
#include "backend/ram/ram_address.h"
#include "backend/ram/ram_ops.h"
#include "backend/ram/ram_stream.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::backend {
namespace {

// Bytes of one kind that are taken; gives them back at the end of its life.
class Taken final {
 public:
  Taken(std::shared_ptr<RamDevice::Shared> shared, uint64_t RamDevice::Shared::*used, uint64_t n)
      : shared_(std::move(shared)), used_(used), n_bytes_(n) {}
  ~Taken() {
    const std::lock_guard lock(shared_->mutex);
    (*shared_).*used_ -= n_bytes_;
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  std::shared_ptr<RamDevice::Shared> shared_;
  uint64_t RamDevice::Shared::*used_;
  uint64_t n_bytes_;
};

std::shared_ptr<Taken> take(const std::shared_ptr<RamDevice::Shared>& shared,
                            uint64_t RamDevice::Shared::*used, uint64_t limit, uint64_t n_bytes) {
  const std::lock_guard lock(shared->mutex);
  uint64_t& n_used = (*shared).*used;
  if (n_bytes > limit - n_used) return nullptr;
  n_used += n_bytes;
  return std::make_shared<Taken>(shared, used, n_bytes);
}

}  // namespace

RamDevice::RamDevice(RamDeviceOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))) {}
RamDevice::~RamDevice() = default;

std::string RamDevice::name() const {
  return cat("RAM device, ", format_bytes(shared_->options.n_bytes), ", link ",
             shared_->options.link_gbps, " GB/s");
}

uint64_t RamDevice::free_bytes() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->options.n_bytes - shared_->n_device;
}

Buffer RamDevice::allocate(MemoryKind kind, uint64_t n_bytes) {
  std::shared_ptr<Taken> taken;
  const RamDeviceOptions& o = shared_->options;
  const bool is_own = kind == MemoryKind::device;
  if (is_own) {
    taken = take(shared_, &Shared::n_device, o.n_bytes, n_bytes);
  } else {
    taken = take(shared_, &Shared::n_pinned, o.pin_limit, n_bytes);
  }
  if (!taken) {
    throw Error(
        Errc::out_of_memory,
        cat("the RAM device cannot allocate ", format_bytes(n_bytes), " of ",
            is_own ? "its own" : "pinned", " memory; it may hold ",
            format_bytes(is_own ? o.n_bytes : o.pin_limit), ", of which ",
            format_bytes(is_own ? free_bytes() : o.pin_limit - shared_->n_pinned), " are free"));
  }
  auto memory = std::make_shared<Buffer>(allocate_host(n_bytes));
  std::byte* const data = is_own ? device_address(memory->data()) : memory->data();
  const std::lock_guard lock(shared_->mutex);
  shared_->blocks[data] = {n_bytes, kind};
  return {data, n_bytes, [memory, taken, shared = shared_](std::byte* block) {
            const std::lock_guard release_lock(shared->mutex);
            const auto first = reinterpret_cast<const uint64_t*>(block);
            const auto last = reinterpret_cast<const uint64_t*>(block + memory->n_bytes());
            shared->words.erase(shared->words.lower_bound(first), shared->words.lower_bound(last));
            shared->blocks.erase(block);
          }};
}

std::unique_ptr<Registration> RamDevice::register_host(std::span<const std::byte> bytes) {
  struct Held final : Registration {
    Held(std::shared_ptr<Taken> t, std::shared_ptr<Shared> s, std::span<const std::byte> b)
        : taken(std::move(t)), shared(std::move(s)), bytes(b) {
      tell(true);
    }
    ~Held() override { tell(false); }
    const std::byte* device_address() const override { return bytes.data(); }
    void tell(bool begins) const {
      if (shared->options.on_register) shared->options.on_register(bytes, begins);
    }
    std::shared_ptr<Taken> taken;
    std::shared_ptr<Shared> shared;
    std::span<const std::byte> bytes;
  };
  auto taken = take(shared_, &Shared::n_pinned, shared_->options.pin_limit, bytes.size());
  return taken ? std::make_unique<Held>(std::move(taken), shared_, bytes) : nullptr;
}

std::unique_ptr<Stream> RamDevice::make_stream(std::string name) {
  return std::make_unique<RamStream>(shared_, std::move(name));
}

std::unique_ptr<Event> RamDevice::make_event() { return std::make_unique<RamEvent>(shared_); }

std::unique_ptr<DeviceOps> RamDevice::make_ops(Stream& stream, const MailboxView& mailbox,
                                               std::span<std::byte> scratch) {
  return std::make_unique<RamOps>(*this, static_cast<RamStream&>(stream), mailbox, scratch);
}

void RamDevice::host_worked(double seconds) {
  const std::lock_guard lock(shared_->mutex);
  shared_->host_seconds += seconds;
}

uint64_t RamDevice::read(const uint64_t* word) const { return shared_->read(word); }

const RamDeviceOptions& RamDevice::options() const { return shared_->options; }

uint64_t RamDevice::pinned_bytes() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->n_pinned;
}

int RamDevice::n_blocks() const {
  const std::lock_guard lock(shared_->mutex);
  return static_cast<int>(std::ranges::count_if(
      shared_->blocks, [](const auto& block) { return block.second.kind == MemoryKind::device; }));
}

uint64_t RamDevice::bytes_out() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->n_out;
}

bool RamDevice::owns(std::span<const std::byte> bytes) const {
  return shared_->is_in(MemoryKind::device, {device_address(bytes.data()), bytes.size()});
}

double RamDevice::link_free_at() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->link_free_at;
}

double RamDevice::seconds(const Stream& stream) {
  return static_cast<const RamStream&>(stream).seconds();
}

std::unique_ptr<Device> make_ram_device(RamDeviceOptions options) {
  return std::make_unique<RamDevice>(std::move(options));
}

}  // namespace sluice::backend
