// See saved_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/saved_text.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/checksum.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/units.h"
#include "engine/step/text_data.h"

namespace sluice::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they are");

constexpr size_t kPieceBytes = kMiB;

template <typename T>
std::span<const std::byte> stored(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <size_t N>
void put(char (&field)[N], std::string_view text) {
  text.copy(field, N - 1);
}

// For a line that a person reads.
template <size_t N>
std::string field_text(const char (&field)[N]) {
  std::string text(field, strnlen(field, N));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// As flags have it.
std::string flag_name(quant::Type type) {
  std::string name(quant::type_info(type).name);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

uint64_t sum_of(const SavedTextHeader& header) {
  Checksum sum;
  sum.add(stored(header).first(offsetof(SavedTextHeader, sum)));
  return sum.value();
}

SavedTextHeader make_header(const TextMemory& memory, int n_tokens, const ModelStamp& model) {
  const KvOptions& kv = memory.caches.front()->options();
  SavedTextHeader h{};
  std::copy_n(SavedTextHeader::kMagic, sizeof h.magic, h.magic);
  h.version = SavedTextHeader::kVersion;
  h.n_tokens = static_cast<uint32_t>(n_tokens);
  h.file_bytes = sizeof h + static_cast<uint64_t>(n_tokens) * sizeof(TokenId) +
                 text_data_bytes(memory, n_tokens) + sizeof(uint64_t);
  h.model_bytes = model.file_bytes;
  h.model_sum = model.sum;
  put(h.model, model.name);
  put(h.k_type, flag_name(kv.k_type));
  put(h.v_type, flag_name(kv.v_type));
  h.page_tokens = static_cast<uint32_t>(kv.page_tokens);
  h.sum = sum_of(h);
  return h;
}

class TextFile {
 public:
  explicit TextFile(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "rbe"), std::fclose) {
    if (!file_) fail("cannot be opened (", reason(), "); expected a text that sluice has saved");
    struct stat info {};
    if (::fstat(::fileno(file_.get()), &info) != 0) fail("cannot be examined (", reason(), ")");
    if (!S_ISREG(info.st_mode)) refuse("is no plain file; expected a text that sluice has saved");
    n_bytes_ = static_cast<uint64_t>(info.st_size);
  }

  uint64_t n_bytes() const { return n_bytes_; }
  void seek(uint64_t to) {
    if (::fseeko(file_.get(), static_cast<off_t>(to), SEEK_SET) != 0) {
      fail("cannot be read (", reason(), ")");
    }
  }
  void read(std::span<std::byte> bytes) {
    errno = 0;
    if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) return;
    fail("cannot be read to its end (", errno != 0 ? reason() : "it was cut meanwhile", ")");
  }
  template <typename T>
  T read() {
    T value;
    read(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  // What is damaged, and what is whole but not for this session.
  template <typename... Args>
  [[noreturn]] void fail(const Args&... args) const {
    throw Error(Errc::bad_file, cat(path_, ": ", args...));
  }
  template <typename... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    throw Error(Errc::bad_request, cat(path_, ": ", args...));
  }

 private:
  static std::string reason() { return std::generic_category().message(errno); }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  uint64_t n_bytes_ = 0;
};

constexpr const char* kSaveAgain = "delete the file, and save the text again";

SavedTextHeader read_header(TextFile& file) {
  constexpr size_t kStart = sizeof(SavedTextHeader::magic) + sizeof(SavedTextHeader::version);
  SavedTextHeader h{};
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(&h, 1));
  const uint64_t n_there = std::min<uint64_t>(file.n_bytes(), sizeof h);
  file.read(bytes.first(n_there));
  const bool is_ours = std::equal(std::begin(h.magic), std::end(h.magic), SavedTextHeader::kMagic);
  if (n_there < sizeof h.magic || !is_ours) {
    file.refuse("is no text that sluice has saved: it does not begin with \"SLUICETX\"");
  }
  if (n_there < kStart) file.fail("ends within its header; ", kSaveAgain);
  if (h.version != SavedTextHeader::kVersion) {
    file.refuse("is of version ", h.version, "; expected ", SavedTextHeader::kVersion,
                ": use the sluice that wrote it, or another name");
  }
  if (n_there < sizeof h) file.fail("ends within its header; ", kSaveAgain);
  if (h.sum != sum_of(h)) file.fail("its header is damaged; ", kSaveAgain);
  if (file.n_bytes() != h.file_bytes) {
    file.fail("has ", file.n_bytes(), " bytes; expected ", h.file_bytes, " (",
              file.n_bytes() < h.file_bytes ? "it was cut" : "something follows it", "); ",
              kSaveAgain);
  }
  return h;
}

// Of a whole header: whether the text is one for this model and this cache.
void require_fitting(const TextFile& file, const SavedTextHeader& h, const TextMemory& memory,
                     const ModelStamp& model) {
  const KvOptions& kv = memory.caches.front()->options();
  if (h.n_tokens == 0 || h.n_tokens > static_cast<uint64_t>(kv.n_ctx)) {
    file.refuse("holds a text of ", h.n_tokens, " tokens, and the context holds ", kv.n_ctx,
                "; ask for a larger context (-c)");
  }
  const SavedTextHeader own = make_header(memory, static_cast<int>(h.n_tokens), model);
  if (h.model_sum != own.model_sum || h.model_bytes != own.model_bytes) {
    file.refuse("holds a text of another model (", field_text(h.model), ", ",
                format_bytes(h.model_bytes), "); expected one of this (", field_text(own.model),
                ", ", format_bytes(own.model_bytes), "): give each model a file of its own");
  }
  if (field_text(h.k_type) != field_text(own.k_type) ||
      field_text(h.v_type) != field_text(own.v_type)) {
    file.refuse("holds keys of ", field_text(h.k_type), " and values of ", field_text(h.v_type),
                "; expected ", field_text(own.k_type), " and ", field_text(own.v_type),
                ": open the session with the file's types (-ctk ", field_text(h.k_type), " -ctv ",
                field_text(h.v_type), ")");
  }
  if (h.page_tokens != own.page_tokens || h.file_bytes != own.file_bytes) {
    file.refuse("has ", h.file_bytes, " bytes in pages of ", h.page_tokens, " tokens; expected ",
                own.file_bytes, " in pages of ", own.page_tokens, "; ", kSaveAgain);
  }
}

// All of it is read before anything changes.
void require_whole(TextFile& file) {
  uint64_t n_left = file.n_bytes() - sizeof(SavedTextHeader) - sizeof(uint64_t);
  std::vector<std::byte> piece(kPieceBytes);
  Checksum sum;
  while (n_left > 0) {
    const auto some = std::span(piece).first(std::min<uint64_t>(n_left, piece.size()));
    file.read(some);
    sum.add(some);
    n_left -= some.size();
  }
  if (file.read<uint64_t>() != sum.value()) {
    file.fail("is damaged: its sum does not match its content; ", kSaveAgain);
  }
}

// Behind the header, which fits.
std::vector<TokenId> read_tokens(TextFile& file, const SavedTextHeader& header,
                                 const ModelStamp& model) {
  std::vector<TokenId> tokens(header.n_tokens);
  file.read(std::as_writable_bytes(std::span(tokens)));
  for (const TokenId token : tokens) {
    if (token >= 0 && token < model.n_vocab) continue;
    file.fail("holds token id ", token, "; expected 0 to ", model.n_vocab - 1, "; ", kSaveAgain);
  }
  return tokens;
}

}  // namespace

void save_text(const std::string& path, const TextMemory& memory, SequenceId sequence,
               const ModelStamp& model) {
  const std::span<const TokenId> tokens = memory.rows.text(sequence);
  if (tokens.empty()) {
    throw Error(Errc::bad_request, "there is no text to save; compute some tokens first");
  }
  OutputFile file(path);
  file.append(stored(make_header(memory, static_cast<int>(tokens.size()), model)));
  Checksum sum;
  const auto append = [&](std::span<const std::byte> bytes) {
    sum.add(bytes);
    file.append(bytes);
  };
  append(std::as_bytes(tokens));
  read_text_data(memory, sequence, append);
  file.append(stored(sum.value()));
  file.commit();
}

std::vector<TokenId> read_saved_tokens(const std::string& path, const TextMemory& memory,
                                       const ModelStamp& model) {
  TextFile file(path);
  const SavedTextHeader header = read_header(file);
  require_fitting(file, header, memory, model);
  return read_tokens(file, header, model);
}

std::vector<TokenId> load_text(const std::string& path, const TextMemory& memory,
                               SequenceId sequence, const ModelStamp& model) {
  TextFile file(path);
  const SavedTextHeader header = read_header(file);
  require_fitting(file, header, memory, model);
  require_whole(file);
  file.seek(sizeof header);
  const std::vector<TokenId> tokens = read_tokens(file, header, model);
  write_text_data(memory, sequence, tokens, [&](std::span<std::byte> bytes) { file.read(bytes); });
  return tokens;
}

}  // namespace sluice::engine
