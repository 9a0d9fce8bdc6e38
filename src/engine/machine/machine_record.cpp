// See machine_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/machine/state_file.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kMaxBytes = kMiB;
constexpr size_t kMaxNameBytes = 200;
constexpr std::string_view kFirstLine = "sluice-machine 1";
constexpr std::string_view kLastLine = "end";
constexpr double kMostTokensPerSecond = 1e6;

struct Rate {
  std::string_view key;
  double MachineRecord::*member;
  double most;  // that a machine may have
};
constexpr std::array kRates = {
    Rate{"link_gbps", &MachineRecord::link_gbps, 1e5},
    Rate{"cpu_gbps", &MachineRecord::cpu_gbps, 1e5},
    Rate{"device_gbps", &MachineRecord::device_gbps, 1e5},
    Rate{"both_link_gbps", &MachineRecord::both_link_gbps, 1e5},
    Rate{"both_cpu_gbps", &MachineRecord::both_cpu_gbps, 1e5},
    Rate{"handshake_us", &MachineRecord::handshake_us, 1e6},
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
  explicit Lines(std::string_view text) : text_(text) {}

  bool is_at_end() const { return text_.empty(); }

  std::string_view next() {
    const size_t end = text_.find('\n');
    if (end == std::string_view::npos) throw Error(Errc::bad_file, "ends too early");
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return line;
  }

  // What follows "key " in the next line.
  std::string_view value_of(std::string_view key) {
    const std::string_view line = next();
    const bool has_key = line.starts_with(key) && line.substr(key.size()).starts_with(' ');
    if (!has_key || line.size() == key.size() + 1) fail(line, cat("'", key, "' and its value"));
    return line.substr(key.size() + 1);
  }

 private:
  std::string_view text_;
};

// "12.5 cache Qwen3 30B, 18632 bytes"
TrialRecord parse_trial(std::string_view text) {
  const size_t first = std::min(text.find(' '), text.size());
  const size_t second = std::min(text.find(' ', first + 1), text.size());
  const auto speed = parse_number(text.substr(0, first), kMostTokensPerSecond);
  if (!speed || second <= first + 1 || second + 1 >= text.size()) {
    fail(text, "a trial's tokens/s, mode and model");
  }
  return {std::string(text.substr(second + 1)),
          std::string(text.substr(first + 1, second - first - 1)), *speed};
}

MachineRecord parse(std::string_view text) {
  Lines lines(text);
  MachineRecord record;
  if (const auto line = lines.next(); line != kFirstLine) fail(line, cat("'", kFirstLine, "'"));
  record.fingerprint = lines.value_of("fingerprint");
  for (const auto& [key, member, most] : kRates) {
    const std::string_view value = lines.value_of(key);
    const auto number = parse_number(value, most);
    if (!number) fail(value, cat("for ", key, " a number from 0 to ", most));
    record.*member = *number;
  }
  constexpr std::string_view kTrial = "trial ";
  std::string_view line = lines.next();
  for (; line.starts_with(kTrial); line = lines.next()) {
    record.trials.push_back(parse_trial(line.substr(kTrial.size())));
  }
  if (line != kLastLine || !lines.is_at_end())
    fail(line, cat("a trial, or '", kLastLine, "' last"));
  return record;
}

bool is_one_line(std::string_view text) {
  return !text.empty() && text.find('\n') == std::string_view::npos;
}

std::string text_of(const MachineRecord& record) {
  CHECK(is_one_line(record.fingerprint));
  std::string text = cat(kFirstLine, "\nfingerprint ", record.fingerprint, "\n");
  for (const auto& [key, member, most] : kRates) {
    text += cat(key, " ", digits_of(record.*member), "\n");
  }
  for (const auto& [model_key, mode, tokens_per_second] : record.trials) {
    CHECK(is_one_line(model_key) && is_one_line(mode) && mode.find(' ') == std::string::npos);
    text += cat("trial ", digits_of(tokens_per_second), " ", mode, " ", model_key, "\n");
  }
  return cat(text, kLastLine, "\n");
}

}  // namespace

void MachineRecord::add_trial(const TrialRecord& trial) {
  std::erase_if(trials, [&](const TrialRecord& t) {
    return t.model_key == trial.model_key && t.mode == trial.mode;
  });
  trials.push_back(trial);
}

std::optional<MachineRecord> MachineRecord::load(const std::string& path,
                                                 std::string_view fingerprint,
                                                 std::string* warning) {
  std::optional<MachineRecord> loaded;
  const auto parse_bytes = [&](std::span<const std::byte> bytes) {
    MachineRecord record = parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (fingerprint.empty() || record.fingerprint == fingerprint) loaded = std::move(record);
  };
  read_state_file(path, kMaxBytes, parse_bytes, warning);
  return loaded;
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
