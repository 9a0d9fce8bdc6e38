// See trace_csv.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/trace_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <optional>

#include "base/error.h"

namespace sluice::policy {

namespace {

struct Row {
  int turn, phase, step, layer, slot, expert;
  float weight;
  size_t line;

  std::array<int, 3> step_key() const { return {turn, phase, step}; }
  std::array<int, 5> key() const { return {turn, phase, step, layer, slot}; }
};

template <typename... Args>
[[noreturn]] void fail(size_t line, const Args&... args) {
  throw Error(Errc::bad_file, cat("routing CSV, line ", line, ": ", args...));
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class CsvParser {
 public:
  RoutingTrace parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      if (line.starts_with('#')) {
        comment(line);
      } else if (!columns_seen_) {
        columns(line);
      } else {
        row(line);
      }
    }
    return build();
  }

 private:
  // The number after "name=", or nothing where the line does not have it.
  template <typename T>
  std::optional<T> field(std::string_view line, std::string_view name) const {
    const size_t at = line.find(cat(" ", name, "="));
    if (at == line.npos) return std::nullopt;
    line.remove_prefix(at + name.size() + 2);
    const std::string_view value = line.substr(0, line.find(' '));
    if (const auto parsed = number<T>(value)) return parsed;
    fail(line_, name, " is '", value.substr(0, 40), "'; expected a number");
  }

  void comment(std::string_view line) {
    if (const auto n_layers = field<int>(line, "n_layer")) {
      RoutingShape& shape = trace_.header.shape;
      if (shape.n_layers > 0) fail(line_, "n_layer= again; expected one line with it");
      shape.n_layers = *n_layers;
      shape.n_experts = field<int>(line, "n_expert").value_or(0);
      shape.n_experts_used = field<int>(line, "n_expert_used").value_or(0);
      if (shape.n_layers < 1 || shape.n_layers > kMaxLayers) {
        fail(line_, "n_layer is ", shape.n_layers, "; expected 1 to ", kMaxLayers);
      }
      shape.expert_bytes.assign(static_cast<size_t>(shape.n_layers), 0);
      check_shape(shape, "routing CSV");
      const size_t at = line.find(" model=");
      const size_t begin = at == line.npos ? line.size() : at + 7;
      std::string_view model = line.substr(begin, line.find(' ', begin) - begin);
      model.remove_prefix(model.rfind('/') + 1);  // npos + 1 is 0
      trace_.header.model = model;
    } else if (const auto layer = field<int>(line, "layer")) {
      const auto bytes = field<uint64_t>(line, "expert_bytes");
      if (*layer < 0 || *layer >= trace_.header.shape.n_layers || !bytes) {
        fail(line_, "bytes of layer ", *layer, "; expected expert_bytes= for one of the ",
             trace_.header.shape.n_layers, " layers that n_layer= named before");
      }
      trace_.header.shape.expert_bytes[static_cast<size_t>(*layer)] = *bytes;
    }
  }

  void columns(std::string_view line) {
    constexpr std::string_view kColumns = "turn,phase,step,layer,slot,expert,weight";
    if (!line.starts_with(kColumns)) {
      fail(line_, "the columns are '", line.substr(0, 60), "'; expected ", kColumns);
    }
    if (trace_.header.shape.n_layers == 0) {
      fail(line_, "no line '# ... n_layer= n_expert= n_expert_used=' before the columns");
    }
    columns_seen_ = true;
  }

  void row(std::string_view line) {
    constexpr int kIntegers = 6;
    std::array<int, kIntegers> values{};
    std::array<std::string_view, kIntegers + 1> texts;
    for (std::string_view& text : texts) {
      const size_t end = line.find(',');
      text = line.substr(0, end);
      line.remove_prefix(end == line.npos ? line.size() : end + 1);
    }
    for (size_t i = 0; i < kIntegers; ++i) {
      const auto value = number<int>(texts[i]);
      if (!value || *value < 0) {
        fail(line_, "column ", i + 1, " is '", texts[i].substr(0, 40),
             "'; expected a number from 0 up");
      }
      values[i] = *value;
    }
    const auto weight = number<float>(texts[kIntegers]);
    if (!weight) {
      fail(line_, "the weight is '", texts[kIntegers].substr(0, 40), "'; expected a number");
    }
    const auto [turn, phase, step, layer, slot, expert] = values;
    if (phase > 1) fail(line_, "phase ", phase, "; expected 0 (prompt) or 1 (decode)");
    if (layer >= trace_.header.shape.n_layers) {
      fail(line_, "layer ", layer, "; expected 0 to ", trace_.header.shape.n_layers - 1);
    }
    rows_.push_back({turn, phase, step, layer, slot, expert, *weight, line_});
  }

  RoutingTrace build() {
    if (rows_.empty()) fail(line_, "no rows; expected one for every routed expert");
    check_shape(trace_.header.shape, "routing CSV");
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return a.key() < b.key(); });
    const int n_layers = trace_.header.shape.n_layers;
    for (size_t i = 0; i < rows_.size();) {
      const Row& first = rows_[i];
      RoutingStep& step = trace_.steps.emplace_back();
      step.phase = static_cast<Phase>(first.phase);
      for (int layer = 0; layer < n_layers; ++layer) {
        step.begin.push_back(static_cast<int>(step.routed.size()));
        for (;
             i < rows_.size() && rows_[i].step_key() == first.step_key() && rows_[i].layer == layer;
             ++i) {
          step.routed.push_back({ExpertId(rows_[i].expert), rows_[i].weight});
        }
      }
      step.begin.push_back(static_cast<int>(step.routed.size()));
      check_step(trace_.header.shape, step, "routing CSV, the step of line", first.line);
    }
    return std::move(trace_);
  }

  RoutingTrace trace_;
  std::vector<Row> rows_;
  size_t line_ = 0;
  bool columns_seen_ = false;
};

}  // namespace

TraceCsvWriter::TraceCsvWriter(const TraceHeader& header) {
  const RoutingShape& shape = header.shape;
  head_ =
      cat("# model=", header.model.substr(header.model.rfind('/') + 1), " n_layer=", shape.n_layers,
          " n_expert=", shape.n_experts, " n_expert_used=", shape.n_experts_used, "\n");
  for (size_t i = 0; i < shape.expert_bytes.size(); ++i) {
    head_ += cat("# layer=", i, " expert_bytes=", shape.expert_bytes[i], "\n");
  }
  head_ += "turn,phase,step,layer,slot,expert,weight\n";
}

std::string TraceCsvWriter::rows(const RoutingStep& step) {
  if (step.phase == Phase::prefill && phase_ == Phase::decode) ++turn_;
  phase_ = step.phase;
  std::string out;
  for (size_t layer = 0; layer + 1 < step.begin.size(); ++layer) {
    for (int i = step.begin[layer]; i < step.begin[layer + 1]; ++i) {
      const auto& [expert, weight] = step.routed[static_cast<size_t>(i)];
      char text[32];  // the shortest that reads back as the same number
      const auto written = std::to_chars(std::begin(text), std::end(text), weight);
      out += cat(turn_, ",", static_cast<int>(step.phase), ",", step_, ",", layer, ",",
                 i - step.begin[layer], ",", expert.value, ",",
                 std::string_view(text, static_cast<size_t>(written.ptr - text)), "\n");
    }
  }
  ++step_;
  return out;
}

RoutingTrace parse_trace_csv(std::string_view text) { return CsvParser().parse(text); }

}  // namespace sluice::policy
