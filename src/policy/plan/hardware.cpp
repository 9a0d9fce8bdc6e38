// See hardware.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/hardware.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "policy/plan/hardware_table.h"

namespace sluice::policy {
namespace {

// Shares of the data sheet's figures that good kernels reach on average.
constexpr double kGpuShare = 0.8;
constexpr double kCpuShare = 0.67;
// Of a machine's RAM, this part is the system's.
constexpr uint64_t kSystemShare = 16;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kByteUnits[] = {{"g", kGiB},   {"m", kMiB},   {"k", kKiB},       {"gib", kGiB},
                               {"mib", kMiB}, {"kib", kKiB}, {"gb", 1e9},       {"mb", 1e6},
                               {"kb", 1e3},   {"b", 1},      {"t", kGiB* kKiB}, {"tib", kGiB* kKiB},
                               {"tb", 1e12}};
constexpr Unit kRateUnits[] = {
    {"", 1}, {"gb/s", 1}, {"mb/s", 1e-3}, {"tb/s", 1e3}, {"gib/s", 1.073741824}, {"gbps", 1}};
constexpr Unit kTimeUnits[] = {{"", 1}, {"us", 1}, {"ms", 1e3}};
constexpr Unit kPlain[] = {{"", 1}};

struct Range {
  double least;
  double most;
};

[[noreturn]] void refuse(const std::string& text) { throw Error(Errc::bad_request, text); }

// For error texts: what a person typed, short.
std::string shown(std::string_view text) { return cat("'", text.substr(0, 40), "'"); }

// Lower case, without spaces and underscores: "RTX 4070 Ti" is rtx4070ti.
std::string normalised(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '_' || c == '\t') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

double parse_quantity(std::string_view typed, std::span<const Unit> units, Range range,
                      std::string_view what, std::string_view example) {
  const std::string text = normalised(typed);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto found = std::ranges::find(units, unit, &Unit::name);
  if (error != std::errc() || found == units.end()) {
    refuse(cat(what, " is ", shown(typed), "; expected a number with its unit, such as ", example));
  }
  const double value = number * found->factor;
  if (!std::isfinite(value) || value < range.least || value > range.most) {
    refuse(cat(what, " is ", shown(typed), ", which no machine has; expected something like ",
               example));
  }
  return value;
}

constexpr Range kBytes{0.0, 1e15};
constexpr Range kRates{1e-3, 1e5};
constexpr Range kMicroseconds{0.0, 1e6};

uint64_t bytes_of(std::string_view text, std::string_view what, std::string_view example) {
  return static_cast<uint64_t>(
      std::llround(parse_quantity(text, kByteUnits, kBytes, what, example)));
}

// The least number of single characters to add, drop or change.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// "a, b or c": the three nearest of the names.
template <typename Known>
std::string nearest(std::string_view text, std::span<const Known> table) {
  std::vector<std::string_view> names;
  for (const Known& known : table) {
    if (names.empty() || names.back() != known.name) names.push_back(known.name);
  }
  std::ranges::stable_sort(
      names, {}, [&](std::string_view name) { return edit_distance(text.substr(0, 64), name); });
  return cat(names[0], ", ", names[1], " or ", names[2]);
}

template <typename Known>
const Known* find(std::span<const Known> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Known::name);
  return found == table.end() ? nullptr : &*found;
}

// "12g" -> 12; nothing for what is no size.
std::optional<uint64_t> gib_of(std::string_view text) {
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (unit != "g" && unit != "gb" && unit != "gib")) return {};
  if (n == 0 || n > 1'000'000)
    refuse(cat(shown(text), ", which no machine has; expected e.g. 64g"));
  return n;
}

void set_link(Hardware& hardware, const KnownLink& link) { hardware.link_gbps = link.gbps; }

void set_no_gpu(Hardware& hardware) {
  hardware.gpu.clear();
  hardware.gpu_source.clear();
  hardware.vram_free = 0;
  hardware.gpu_gbps = hardware.link_gbps = 0.0;
}

// "rtx4070ti" or "rtx4070ti-12g".
void set_gpu(Hardware& hardware, std::string_view text) {
  if (text == "cpu" || text == "none") return set_no_gpu(hardware);
  const size_t dash = text.rfind('-');
  const uint64_t size = dash == std::string_view::npos
                            ? 0
                            : gib_of(text.substr(dash + 1)).value_or(0);  // 0: not said
  const std::string_view name = size > 0 ? text.substr(0, dash) : text;
  const KnownGpu* first = find(known_gpus(), name);
  if (!first) {
    refuse(cat("no GPU called ", shown(name), " is known; did you mean ",
               nearest(name, known_gpus()),
               "? Others by numbers: vram=12GiB,gpu=500GB/s,link=25GB/s"));
  }
  const KnownGpu* chosen = nullptr;
  std::string sizes;
  for (const KnownGpu& gpu : known_gpus()) {
    if (gpu.name != name) continue;
    sizes += cat(sizes.empty() ? "" : " or ", gpu.vram_gib, "g");
    if (!chosen && (size == 0 || size == static_cast<uint64_t>(gpu.vram_gib))) chosen = &gpu;
  }
  if (!chosen) {
    refuse(cat(name, " has ", sizes, ", not ", size, "g; for another size add e.g. ,vram=", size,
               "GiB"));
  }
  hardware.gpu = name;
  hardware.vram_free = static_cast<uint64_t>(chosen->vram_gib) * kGiB;
  hardware.gpu_gbps = chosen->gbps * kGpuShare;
  set_link(hardware, *find(known_links(), chosen->link));
  hardware.gpu_source = cat("the table: ", chosen->gbps, " GB/s x ", kGpuShare, ", ", chosen->link);
}

// "64g" or "64g-ddr5-quad".
void set_ram(Hardware& hardware, std::string_view text) {
  const size_t dash = text.find('-');
  const uint64_t total = *gib_of(text.substr(0, dash)) * kGiB;
  hardware.ram_free = total - total / kSystemShare;
  hardware.ram_source = cat("1/", kSystemShare, " of ", format_bytes(total), " left to the system");
  if (dash == std::string_view::npos) return;
  const std::string_view kind = text.substr(dash + 1);
  const KnownMemory* memory = find(known_memories(), kind);
  if (!memory) {
    refuse(cat("no memory called ", shown(kind), " is known; did you mean ",
               nearest(kind, known_memories()), "? Or say cpu=60GB/s"));
  }
  hardware.cpu_gbps = memory->gbps * kCpuShare;
  hardware.cpu_gops = hardware.cpu_kv_gbps = hardware.cpu_kv_prompt_gbps = 0.0;
  hardware.n_cores = memory->n_cores;
  hardware.cpu_source = cat("the table: ", memory->gbps, " GB/s x ", kCpuShare);
}

void set_part(Hardware& hardware, std::string_view part, bool is_first) {
  if (gib_of(part.substr(0, part.find('-')))) return set_ram(hardware, part);
  if (const KnownLink* link = find(known_links(), part)) return set_link(hardware, *link);
  if (is_first) return set_gpu(hardware, part);
  refuse(cat(shown(part), " is neither RAM nor a link; expected e.g. 64g-ddr5 or ",
             nearest(part, known_links())));
}

void set_number(Hardware& h, std::string_view key, std::string_view value) {
  if (key == "vram") {
    h.vram_free = bytes_of(value, key, "vram=12GiB");
    if (h.vram_free == 0) set_no_gpu(h);
  } else if (key == "overhead") {
    h.vram_overhead = bytes_of(value, key, "overhead=512MiB");
  } else if (key == "ram") {
    h.ram_free = bytes_of(value, key, "ram=64GiB");
    h.ram_source = "given";
  } else if (key == "pin") {
    h.pin_limit = bytes_of(value, key, "pin=16GiB");
  } else if (key == "gpu") {
    h.gpu_gbps = parse_quantity(value, kRateUnits, kRates, key, "gpu=500GB/s");
    h.gpu_source = "given";
  } else if (key == "link") {
    h.link_gbps = parse_quantity(value, kRateUnits, kRates, key, "link=25GB/s");
  } else if (key == "cpu") {
    h.cpu_gbps = parse_quantity(value, kRateUnits, kRates, key, "cpu=60GB/s");
    h.cpu_kv_gbps = 0.0;  // what is given is the rate of all that is read
    h.cpu_source = "given";
  } else if (key == "handshake") {
    h.handshake_us = parse_quantity(value, kTimeUnits, kMicroseconds, key, "handshake=18us");
  } else if (key == "experts") {
    h.experts_us = parse_quantity(value, kTimeUnits, kMicroseconds, key, "experts=6us");
  } else if (key == "launch") {
    h.launch_us = parse_quantity(value, kTimeUnits, kMicroseconds, key, "launch=12us");
  } else if (key == "readback") {
    h.readback_us = parse_quantity(value, kTimeUnits, kMicroseconds, key, "readback=15us");
  } else if (key == "sampling") {
    h.sampling_us = parse_quantity(value, kTimeUnits, kMicroseconds, key, "sampling=5us");
  } else if (key == "interference") {
    h.copy_interference = parse_quantity(value, kPlain, {0.0, 10.0}, key, "interference=0.4");
  } else if (key == "cores") {
    const double cores = parse_quantity(value, kPlain, {1.0, 4096.0}, key, "cores=16");
    if (cores != std::floor(cores))
      refuse(cat("cores is ", shown(value), "; expected e.g. cores=16"));
    h.n_cores = static_cast<int>(cores);
  } else if (key == "register" && (value == "yes" || value == "no")) {
    h.registers_in_place = value == "yes";
  } else {
    refuse(cat(shown(cat(key, "=", value)),
               " is unknown; expected vram, overhead, ram, gpu, link, cpu, handshake, experts, "
               "launch, readback, sampling, interference, cores, pin or register=yes|no"));
  }
}

}  // namespace

uint64_t parse_bytes(std::string_view text, std::string_view what) {
  return bytes_of(text, what, "12GiB");
}

double parse_gbps(std::string_view text, std::string_view what) {
  return parse_quantity(text, kRateUnits, kRates, what, "25GB/s");
}

double parse_microseconds(std::string_view text, std::string_view what) {
  return parse_quantity(text, kTimeUnits, kMicroseconds, what, "18us");
}

Hardware parse_hardware(std::string_view text, const Hardware& base) {
  Hardware hardware = base;
  hardware.vram_overhead = kCudaBytes;
  const std::string whole = normalised(text);
  bool is_first = true;
  for (const std::string_view item : split(whole, ',')) {
    const size_t equals = item.find('=');
    if (equals != std::string_view::npos) {
      set_number(hardware, item.substr(0, equals), item.substr(equals + 1));
    } else if (is_first && !item.empty()) {
      for (const std::string_view part : split(item, '+')) {
        set_part(hardware, part, is_first);
        is_first = false;
      }
    } else {
      refuse(cat("the hardware description ", shown(text), " has ", shown(item),
                 " where a number belongs; expected e.g. rtx4070ti-12g+64g-ddr5,link=25GB/s"));
    }
    is_first = false;
  }
  if (hardware.has_gpu() && (hardware.gpu_gbps == 0.0 || hardware.link_gbps == 0.0)) {
    const MachineRates typical;
    if (hardware.gpu_gbps == 0.0) hardware.gpu_gbps = typical.gpu_gbps;
    if (hardware.link_gbps == 0.0) hardware.link_gbps = typical.link_gbps;
    hardware.gpu_source = "a typical card's, since nothing was said";
  }
  if (!(hardware.cpu_gbps > 0.0) || hardware.ram_free == 0) {
    refuse(cat("the hardware description ", shown(text),
               " says nothing of RAM and CPU; add e.g. +64g-ddr5, or ram=64GiB,cpu=60GB/s"));
  }
  return hardware;
}

}  // namespace sluice::policy
