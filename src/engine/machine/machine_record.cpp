// See machine_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "base/units.h"
#include "engine/machine/state_file.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kMaxBytes = kMiB;
constexpr size_t kMaxNameBytes = 200;
constexpr std::string_view kFirstLine = "sluice-machine 4";
constexpr std::string_view kThirdLine = "sluice-machine 3";  // the same without a step's own costs
constexpr std::string_view kOlderLines[] = {"sluice-machine 1\n", "sluice-machine 2\n"};
constexpr std::string_view kLastLine = "end";
constexpr double kMostTokensPerSecond = 1e6;

constexpr int kMostThreads = 1024;

struct Rate {
  std::string_view key;
  double MachineRates::*member;
  double most;  // that a machine may have
};
constexpr std::array kRates = {
    Rate{"link_gbps", &MachineRates::link_gbps, 1e5},
    Rate{"cpu_gbps", &MachineRates::cpu_gbps, 1e6},
    Rate{"gpu_gbps", &MachineRates::gpu_gbps, 1e5},
    Rate{"handshake_us", &MachineRates::handshake_us, 1e6},
    Rate{"experts_us", &MachineRates::experts_us, 1e6},
    Rate{"launch_us", &MachineRates::launch_us, 1e6},
    Rate{"readback_us", &MachineRates::readback_us, 1e6},
    Rate{"sampling_us", &MachineRates::sampling_us, 1e6},
    Rate{"copy_interference", &MachineRates::copy_interference, 10.0},
    Rate{"cpu_gops", &MachineRates::cpu_gops, 1e8},
    Rate{"cpu_kv_gbps", &MachineRates::cpu_kv_gbps, 1e6},
    Rate{"cpu_kv_prompt_gbps", &MachineRates::cpu_kv_prompt_gbps, 1e6},
    Rate{"graphs_mib", &MachineRates::graphs_mib, 1e6},
};

[[noreturn]] void fail(std::string_view line, const std::string& expected) {
  std::string shown(line.substr(0, 60));
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  throw Error(Errc::bad_file, cat("has the line '", shown, "'; expected ", expected));
}

// All digits that tell the number from its neighbours.
std::string digits_of(double number) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
  CHECK(error == std::errc());
  return {digits.begin(), end};
}

// Between 0 and most; nothing for all else, also for what is no number.
std::optional<double> parse_number(std::string_view text, double most) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = error == std::errc() && end == text.data() + text.size();
  if (fits && number >= 0.0 && number <= most) return number;
  return {};
}

class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) { read_line(); }

  bool is_at_end() const { return text_.empty(); }
  std::string_view line() const { return line_; }
  void read_line() {
    const size_t end = text_.find('\n');
    if (end == std::string_view::npos) throw Error(Errc::bad_file, "ends too early");
    line_ = text_.substr(0, end);
    text_.remove_prefix(end + 1);
  }

  // What follows "key " in this line, which is then done with; nothing where it has another key.
  std::optional<std::string_view> take(std::string_view key) {
    const bool has_key = line_.starts_with(key) && line_.substr(key.size()).starts_with(' ');
    if (!has_key) return {};
    const std::string_view value = line_.substr(key.size() + 1);
    if (value.empty()) fail(line_, cat("'", key, "' and its value"));
    read_line();
    return value;
  }

 private:
  std::string_view text_, line_;
};

// Takes the next word of a value; what is left is never empty.
std::string_view take_word(std::string_view& text, std::string_view what) {
  const size_t end = text.find(' ');
  if (end == 0 || end == std::string_view::npos || end + 1 == text.size()) fail(text, cat(what));
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

double take_number(std::string_view& text, double most, std::string_view what) {
  const auto number = parse_number(take_word(text, what), most);
  if (!number) fail(text, cat(what));
  return *number;
}

// "2 RAM device, 8 GiB", or a model's key instead, and the lines of its rates.
struct NamedRates {
  int n_threads = 0;
  std::string name;
  MachineRates rates = unmeasured_rates();
};

NamedRates parse_rates(std::string_view text, Lines& lines) {
  NamedRates of;
  of.n_threads =
      static_cast<int>(take_number(text, kMostThreads, "a number of threads and a name"));
  of.name = text;
  for (const auto& [key, member, most] : kRates) {
    const auto value = lines.take(key);
    if (!value) continue;
    const auto number = parse_number(*value, most);
    if (!number) fail(*value, cat("for ", key, " a number from 0 to ", most));
    of.rates.*member = *number;
  }
  return of;
}

// "12.5 cache Qwen3 30B, 18632 bytes, ..."
TrialRecord parse_trial(std::string_view text) {
  constexpr std::string_view kWhat = "a trial's tokens/s, mode and key";
  TrialRecord trial;
  trial.tokens_per_second = take_number(text, kMostTokensPerSecond, kWhat);
  trial.mode = take_word(text, kWhat);
  trial.key = text;
  return trial;
}

MachineRecord parse(std::string_view text) {
  Lines lines(text);
  MachineRecord record;
  const bool is_third = lines.line() == kThirdLine;
  if (!is_third && lines.line() != kFirstLine) fail(lines.line(), cat("'", kFirstLine, "'"));
  lines.read_line();
  const auto host = lines.take("host");
  if (!host) fail(lines.line(), "'host' and its value");
  record.host = *host;
  while (const auto value = lines.take("device")) {
    const auto [n_threads, name, rates] = parse_rates(*value, lines);
    record.devices.push_back({name, n_threads, rates});
  }
  while (const auto value = lines.take("model")) {
    const auto [n_threads, key, rates] = parse_rates(*value, lines);
    record.models.push_back({key, n_threads, rates});
  }
  while (const auto value = lines.take("trial")) record.trials.push_back(parse_trial(*value));
  if (lines.line() != kLastLine || !lines.is_at_end()) {
    fail(lines.line(), cat("a device, a model, a trial, or '", kLastLine, "' last"));
  }
  if (is_third) record.devices.clear();  // see load()
  return record;
}

bool is_one_line(std::string_view text) {
  return !text.empty() && text.find('\n') == std::string_view::npos;
}

std::string text_of(std::string_view what, const NamedRates& of) {
  CHECK(is_one_line(of.name));
  std::string text = cat(what, " ", of.n_threads, " ", of.name, "\n");
  const MachineRates unknown = unmeasured_rates();
  for (const auto& [key, member, most] : kRates) {
    const double rate = of.rates.*member;
    if (rate != unknown.*member) text += cat(key, " ", digits_of(rate), "\n");
  }
  return text;
}

std::string text_of(const MachineRecord& record) {
  CHECK(is_one_line(record.host));
  std::string text = cat(kFirstLine, "\nhost ", record.host, "\n");
  for (const auto& [name, n_threads, rates] : record.devices) {
    text += text_of("device", {n_threads, name, rates});
  }
  for (const auto& [key, n_threads, rates] : record.models) {
    text += text_of("model", {n_threads, key, rates});
  }
  for (const auto& [key, mode, tokens_per_second] : record.trials) {
    CHECK(is_one_line(key) && is_one_line(mode) && mode.find(' ') == std::string::npos);
    text += cat("trial ", digits_of(tokens_per_second), " ", mode, " ", key, "\n");
  }
  return cat(text, kLastLine, "\n");
}

template <typename List, typename Is>
auto* find(List& list, const Is& is) {
  const auto found = std::ranges::find_if(list, is);
  return found == list.end() ? nullptr : &*found;
}

}  // namespace

MachineRecord MachineRecord::of_this_machine() {
  MachineRecord record;
  record.host = machine_fingerprint("");
  return record;
}

void MachineRecord::add(const DeviceRates& added) {
  std::erase_if(devices, [&](const DeviceRates& d) {
    return d.device == added.device && d.n_threads == added.n_threads;
  });
  devices.push_back(added);
}

void MachineRecord::add(const ModelRates& added) {
  std::erase_if(models, [&](const ModelRates& m) {
    return m.model_key == added.model_key && m.n_threads == added.n_threads;
  });
  models.push_back(added);
}

void MachineRecord::add(const TrialRecord& added) {
  std::erase_if(trials,
                [&](const TrialRecord& t) { return t.key == added.key && t.mode == added.mode; });
  trials.push_back(added);
}

const DeviceRates* MachineRecord::device(std::string_view name, int n_threads) const {
  return find(devices,
              [&](const DeviceRates& d) { return d.device == name && d.n_threads == n_threads; });
}

const TrialRecord* MachineRecord::trial(std::string_view key, std::string_view mode) const {
  return find(trials, [&](const TrialRecord& t) { return t.key == key && t.mode == mode; });
}

const ModelRates* MachineRecord::model(std::string_view model_key, int n_threads) const {
  const ModelRates* newest = nullptr;
  for (const ModelRates& m : models) {
    if (m.n_threads != n_threads) continue;
    if (m.model_key == model_key) return &m;
    newest = &m;
  }
  return newest;
}

MachineRecord MachineRecord::load(const std::string& path, std::string* warning) {
  MachineRecord record = of_this_machine();
  bool is_third = false;
  const auto parse_bytes = [&](std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool is_older =
        std::ranges::any_of(kOlderLines, [&](auto line) { return text.starts_with(line); });
    if (is_older) return;  // replaced by the next save
    MachineRecord loaded = parse(text);
    if (loaded.host != record.host) return;
    record = std::move(loaded);
    is_third = text.starts_with(kThirdLine) && text.find("\ndevice ") != std::string_view::npos;
  };
  read_state_file(path, kMaxBytes, parse_bytes, warning);
  if (is_third) {
    *warning =
        cat(path, ": devices were measured by an older version of sluice, which knew less of ",
            "a step's costs; they are measured again");
  }
  return record;
}

void MachineRecord::save(const std::string& path) const {
  const std::string text = text_of(*this);
  write_state_file(path, std::as_bytes(std::span(text)));
}

std::string model_key(std::string_view name, uint64_t file_bytes) {
  std::string key = cat(name.substr(0, kMaxNameBytes), ", ", file_bytes, " bytes");
  std::ranges::replace(key, '\n', ' ');
  return key;
}

}  // namespace sluice::engine
