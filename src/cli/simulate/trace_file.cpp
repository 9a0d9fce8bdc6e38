// See trace_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/trace_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "base/units.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kBinaryMagic = "SLRT";
constexpr size_t kPieceBytes = 256 * kKiB;
constexpr uint64_t kMaxProfileBytes = 32 * kMiB;  // the largest shape's is half of that

// Lets the errors of `action` begin with the name of the file.
template <typename Action>
auto with_name(const std::string& path, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error(error.code(), cat(path, ": ", error.what()));
  }
}

class InputFile {
 public:
  InputFile(std::string path, const char* expected)
      : path_(std::move(path)),
        expected_(expected),
        file_(std::fopen(path_.c_str(), "rb"), std::fclose) {
    if (!file_) fail("opened");
  }

  const std::string& path() const { return path_; }

  // 0 for what has no size, such as a pipe.
  uint64_t n_bytes() const {
    struct stat status {};
    return ::fstat(::fileno(file_.get()), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  }

  // Appends up to so many bytes; false: there are none left.
  bool read(std::vector<std::byte>& out, size_t most) {
    const size_t at = out.size();
    out.resize(at + most);
    out.resize(at + std::fread(out.data() + at, 1, most, file_.get()));
    if (std::ferror(file_.get())) fail("read");
    return out.size() > at;
  }

 private:
  [[noreturn]] void fail(const char* problem) const {
    throw Error(Errc::bad_file,
                cat(path_, ": cannot be ", problem, " (", std::generic_category().message(errno),
                    "); expected ", expected_));
  }

  std::string path_;
  const char* expected_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// The binary format, a piece at a time.
class BinaryTrace {
 public:
  BinaryTrace(InputFile file, std::span<const std::byte> begin) : file_(std::move(file)) {
    reader_.feed(begin);
  }

  policy::TraceHeader header() {
    while (reader_.header() == nullptr) read_more();
    return *reader_.header();
  }

  bool next(policy::RoutingStep& step) {
    while (!reader_.next(step)) {
      if (!read_more()) return false;
    }
    return true;
  }

  uint64_t n_steps() {
    const policy::RoutingShape shape = header().shape;
    const auto n_layers = static_cast<uint64_t>(shape.n_layers);
    const auto n_routed = n_layers * static_cast<uint64_t>(shape.n_experts_used);
    return file_.n_bytes() / (1 + sizeof(TokenId) + n_layers + 2 * sizeof(uint16_t) * n_routed);
  }

  const std::string& path() const { return file_.path(); }

 private:
  bool read_more() {
    piece_.clear();
    if (!file_.read(piece_, kPieceBytes)) {
      reader_.finish();
      return false;
    }
    reader_.feed(piece_);
    return true;
  }

  InputFile file_;
  policy::TraceReader reader_;
  std::vector<std::byte> piece_;
};

TraceInput open_binary(InputFile file, std::span<const std::byte> begin) {
  // shared: a std::function can be copied
  const auto trace = std::make_shared<BinaryTrace>(std::move(file), begin);
  return with_name(trace->path(), [&] {
    const auto next = [trace](policy::RoutingStep& step) {
      return with_name(trace->path(), [&] { return trace->next(step); });
    };
    return TraceInput{trace->header(), next, trace->n_steps()};
  });
}

TraceInput open_csv(const std::string& path, std::string_view text) {
  const auto trace = std::make_shared<policy::RoutingTrace>(
      with_name(path, [&] { return policy::parse_trace_csv(text); }));
  const auto next = [trace, steps = policy::steps_of(*trace)](policy::RoutingStep& step) {
    return steps(step);
  };
  return {trace->header, next, trace->steps.size()};
}

}  // namespace

TraceInput open_trace(const std::string& path) {
  InputFile file(path, "a routing trace, as CSV or as sluice writes it");
  std::vector<std::byte> bytes;
  if (!file.read(bytes, kPieceBytes)) {
    throw Error(Errc::bad_file, cat(path, ": is empty; expected a routing trace"));
  }
  const auto text = [&] {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (text().starts_with(kBinaryMagic)) return open_binary(std::move(file), bytes);
  while (file.read(bytes, kPieceBytes)) continue;
  return open_csv(path, text());
}

TraceOutput::TraceOutput(const std::string& path, const policy::TraceHeader& header) : file_(path) {
  if (path.ends_with(".csv")) {
    csv_.emplace(header);
    file_.append(std::as_bytes(std::span(csv_->head())));
  } else {
    binary_.emplace(header, [this](std::span<const std::byte> b) { file_.append(b); });
  }
}

void TraceOutput::write(const policy::RoutingStep& step) {
  if (!csv_) return binary_->write(step);
  const std::string rows = csv_->rows(step);
  file_.append(std::as_bytes(std::span(rows)));
}

void TraceOutput::commit() {
  if (binary_) binary_->finish();
  file_.commit();
}

policy::RoutingProfile read_profile(const std::string& path, const policy::RoutingShape& shape) {
  InputFile file(path, "a routing profile that sluice wrote");
  std::vector<std::byte> bytes;
  while (bytes.size() < kMaxProfileBytes && file.read(bytes, kPieceBytes)) continue;
  auto profile = with_name(path, [&] { return policy::RoutingProfile::decode(bytes); });
  if (profile.n_layers() != shape.n_layers || profile.n_experts() != shape.n_experts) {
    throw Error(Errc::bad_file, cat(path, ": is the profile of a model of ", profile.n_layers(),
                                    " layers of ", profile.n_experts(), " experts; expected ",
                                    shape.n_layers, " of ", shape.n_experts));
  }
  return profile;
}

void write_profile(const std::string& path, const policy::RoutingProfile& profile) {
  OutputFile file(path);
  file.append(profile.encode());
  file.commit();
}

}  // namespace sluice::cli
