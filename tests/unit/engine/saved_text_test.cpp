// Texts that are written to a file and read back: what follows has the bits of a session that never
// did, on the CPU, on the simulated device and from one to the other; and whatever is wrong with a
// file is told, and changes nothing.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/saved_text.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/checksum.h"
#include "sluice/sluice.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

namespace fs = std::filesystem;
using gguf::test::read_file;

constexpr int kContext = 200;

Logits append(Session& session, std::span<const TokenId> tokens) {
  Logits all;
  session.append(tokens, [&](int, std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

// Some of the experts fit, of two dense networks one; of the layers the first are the host's.
DeviceOptions simulated(const policy::ModelShape& shape, int n_host_layers) {
  const policy::Placement none{shape.n_layers(),
                               std::vector<int>(static_cast<size_t>(shape.n_layers()), 0), 0, 0.0};
  DeviceOptions d;
  d.kind = DeviceKind::sim;
  d.moe = ExpertPlace::cache;
  d.n_gpu_layers = shape.n_layers() - n_host_layers;
  d.sim.machine.link_gbps = 10.0;
  d.sim.machine.vram_free =
      policy::price(shape, {.n_ctx = kContext, .prefill_chunk = 64}, none).vram.total() +
      shape.expert_bytes() * 3 / 4;
  return d;
}

struct SavedText : testing::TestWithParam<const char*> {
  SavedText() : SavedText(GetParam()) {}
  explicit SavedText(const char* architecture)
      : file(architecture, "Q8_0"), model(Model::load(file.path(), {.n_threads = 2})) {}

  Session open(const DeviceOptions& device = {.kind = DeviceKind::cpu},
               KvType type = KvType::f16) const {
    return Session(
        model,
        {.n_ctx = kContext, .k_type = type, .v_type = type, .prefill_chunk = 64, .device = device});
  }
  std::vector<DeviceOptions> devices() const {
    const policy::ModelShape shape = file.shape();
    return {{.kind = DeviceKind::cpu}, simulated(shape, 0), simulated(shape, 1)};
  }

  OpenModel file;
  Model model;
  TempDir dir;
};

INSTANTIATE_TEST_SUITE_P(Models, SavedText, testing::ValuesIn(model::test::kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

// From every device to every device: a prompt and some tokens of an answer, whose number fills
// pages wholly or in part; then a prompt and an answer behind it.
TEST_P(SavedText, GoesOnAsIfItHadNeverBeenSaved) {
  const std::vector<TokenId> text = random_tokens(150, 1), more = random_tokens(20, 2);
  const std::vector<DeviceOptions> all = devices();
  for (const size_t n : {3, 64, 131}) {
    Session never = open();
    append(never, std::span(text).first(n));
    const Logits expected = append(never, more);
    const auto answer = never.generate({}, {.n_tokens = 10}).tokens;
    for (size_t from = 0; from < all.size(); ++from) {
      Session source = open(all[from]);
      append(source, std::span(text).first(n));
      source.save(dir / "t");
      for (size_t to = 0; to < all.size(); ++to) {
        Session session = open(all[to]);
        ASSERT_EQ(session.placement().n_gpu_layers > 0, to > 0);
        append(session, random_tokens(17, 3));  // is forgotten
        EXPECT_EQ(session.load(dir / "t"),
                  std::vector(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n)));
        EXPECT_EQ(session.n_tokens(), static_cast<int>(n));
        expect_same_bits(expected, append(session, more),
                         cat(n, " tokens, from device ", from, " to ", to));
        EXPECT_EQ(session.generate({}, {.n_tokens = 10}).tokens, answer);
      }
    }
  }
}

TEST_P(SavedText, HasTheSameBytesFromEveryDevice) {
  std::vector<std::string> files;
  for (const DeviceOptions& device : devices()) {
    Session session = open(device);
    append(session, random_tokens(90, 4));
    session.generate({}, {.n_tokens = 5});
    session.truncate(91);
    session.save(dir / "t");
    files.push_back(read_file(dir / "t"));
    EXPECT_EQ(files.back(), files.front());
    append(session, random_tokens(3, 5));  // saving changed nothing
    EXPECT_EQ(session.n_tokens(), 94);
  }
}

TEST_P(SavedText, CanBeCutBackBehindItsEndAndBefore) {
  const std::vector<TokenId> text = random_tokens(70, 6), other = random_tokens(8, 7);
  Session source = open();
  append(source, text);
  const Logits expected = append(source, other);
  source.truncate(70);
  source.save(dir / "t");
  Session session = open();
  session.load(dir / "t");
  append(session, random_tokens(30, 8));
  EXPECT_EQ(session.kept_tokens(70), 70);
  session.truncate(70);
  expect_same_bits(expected, append(session, other), "behind its end");
  session.truncate(60);
  append(session, std::span(text).subspan(60));
  expect_same_bits(expected, append(session, other), "before its end");
}

// Few tokens of one step would have left updates to go back by; a file has none.
TEST_P(SavedText, OfFewTokensComputesWhatItGoesBackBy) {
  const std::vector<TokenId> text = random_tokens(9, 9);
  Session source = open();
  append(source, text);
  source.save(dir / "t");
  Session session = open();
  session.load(dir / "t");
  session.truncate(5);
  Session never = open();
  append(never, std::span(text).first(5));
  expect_same_bits(append(never, std::span(text).subspan(5)),
                   append(session, std::span(text).subspan(5)), "from 5");
}

struct SavedFile : SavedText {
  SavedFile() : SavedText("qwen35moe"), text(random_tokens(80, 10)) {
    Session session = open();
    append(session, text);
    session.save(dir / "good");
    good = read_file(dir / "good");
  }

  void write(const std::string& bytes) const { std::ofstream(dir / "bad") << bytes; }
  // With the header's own sum made right again.
  std::string with(size_t offset, uint64_t value, size_t n) const {
    std::string bytes = good;
    std::memcpy(&bytes[offset], &value, n);
    Checksum sum;
    sum.add(std::as_bytes(std::span(bytes)).first(offsetof(SavedTextHeader, sum)));
    const uint64_t v = sum.value();
    std::memcpy(&bytes[offsetof(SavedTextHeader, sum)], &v, sizeof v);
    return bytes;
  }

  // With another first token, and the sum made right again.
  std::string with_token(TokenId token) const {
    std::string bytes = good;
    std::memcpy(&bytes[sizeof(SavedTextHeader)], &token, sizeof token);
    Checksum sum;
    const auto body = std::as_bytes(std::span(bytes)).subspan(sizeof(SavedTextHeader));
    sum.add(body.first(body.size() - sizeof(uint64_t)));
    const uint64_t v = sum.value();
    std::memcpy(&bytes[bytes.size() - sizeof v], &v, sizeof v);
    return bytes;
  }

  // It throws so, and the session goes on with what it had.
  void expect_refused(Session& session, const std::string& path, Errc code,
                      std::initializer_list<std::string> parts) const {
    const std::vector<TokenId> own = random_tokens(20, 11), next = random_tokens(4, 12);
    Session never = open();
    append(never, own);
    session.truncate(0);
    append(session, own);
    const auto best = never.generate({}, {.n_tokens = 1}).tokens;
    try {
      session.load(path);
      ADD_FAILURE() << "expected an error with '" << *parts.begin() << "'";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      for (const std::string& part : parts) expect_contains(e.what(), part);
    }
    EXPECT_EQ(session.generate({}, {.n_tokens = 1}).tokens, best);
    if (session.n_tokens() == never.n_tokens()) {
      expect_same_bits(append(never, next), append(session, next), "after " + *parts.begin());
    }
  }
  void expect_refused(const std::string& bytes, Errc code,
                      std::initializer_list<std::string> parts) const {
    write(bytes);
    Session session = open();
    expect_refused(session, dir / "bad", code, parts);
  }

  std::vector<TokenId> text;
  std::string good;
};

TEST_F(SavedFile, ThatIsDamagedIsToldAndChangesNothing) {
  for (const size_t at : {40u, 120u, 150u}) {
    std::string bytes = good;
    bytes[at] ^= 4;
    expect_refused(bytes, Errc::bad_file, {"header is damaged", "save the text again"});
  }
  for (const size_t at : {sizeof(SavedTextHeader), good.size() / 2, good.size() - 1}) {
    std::string bytes = good;
    bytes[at] ^= 1;
    expect_refused(bytes, Errc::bad_file, {"is damaged", "sum", "save the text again"});
  }
  for (const size_t n : {good.size() - 1, good.size() / 2, sizeof(SavedTextHeader)}) {
    expect_refused(good.substr(0, n), Errc::bad_file, {cat("has ", n, " bytes"), "was cut"});
  }
  for (const size_t n : {8, 11, 151}) {
    expect_refused(good.substr(0, n), Errc::bad_file, {"ends within its header"});
  }
  for (const TokenId token : {-1, 261}) {
    expect_refused(with_token(token), Errc::bad_file, {cat("token id ", token), "0 to 260"});
  }
  expect_refused(good + "x", Errc::bad_file, {"something follows"});
  Session session = open();
  expect_refused(session, dir / "none", Errc::bad_file, {"none", "cannot be opened"});
}

TEST_F(SavedFile, ThatIsNotForThisSessionIsToldAndChangesNothing) {
  for (const std::string other : {"", "SLUICE", "GGUF and what follows it"}) {
    expect_refused(other, Errc::bad_request, {"no text that sluice has saved"});
  }
  Session session = open();
  expect_refused(session, dir / "", Errc::bad_request, {"no plain file"});
  expect_refused(with(offsetof(SavedTextHeader, version), 2, 4), Errc::bad_request,
                 {"version 2", "expected 1"});
  expect_refused(with(offsetof(SavedTextHeader, model_sum), 2, 8), Errc::bad_request,
                 {"another model", "qwen35moe", "a file of its own"});
  expect_refused(with(offsetof(SavedTextHeader, n_tokens), 0, 4), Errc::bad_request, {"0 tokens"});
  expect_refused(with(offsetof(SavedTextHeader, n_tokens), 79, 4), Errc::bad_request,
                 {"bytes", "expected"});

  Session small(model, {.n_ctx = 79, .device = {.kind = DeviceKind::cpu}});
  expect_refused(small, dir / "good", Errc::bad_request, {"80 tokens", "79", "-c"});
  Session eight = open({.kind = DeviceKind::cpu}, KvType::q8_0);
  eight.append(random_tokens(3, 1));
  expect_contains(error_of(Errc::bad_request, [&] { eight.load(dir / "good"); }),
                  "-ctk f16 -ctv f16");
  EXPECT_EQ(eight.n_tokens(), 3);
}

// The same shape and size, other weights.
TEST_F(SavedFile, OfAnotherTrainingOfTheModelIsTold) {
  write_tiny(dir / "m.gguf", "qwen35moe", "Q8_0", 7);
  ASSERT_EQ(fs::file_size(dir / "m.gguf"), fs::file_size(file.path()));
  Session other(Model::load(dir / "m.gguf", {.n_threads = 2}),
                {.n_ctx = kContext, .device = {.kind = DeviceKind::cpu}});
  expect_contains(error_of(Errc::bad_request, [&] { other.load(dir / "good"); }), "another model");
}

TEST_F(SavedFile, HoldsEveryTypeOfTheCache) {
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8_0, KvType::q4_0}) {
    const DeviceOptions device = simulated(file.shape(), 0);
    Session never = open({.kind = DeviceKind::cpu}, type);
    append(never, text);
    never.save(dir / "t");
    Session session = open(device, type);
    session.load(dir / "t");
    const std::vector<TokenId> more = random_tokens(7, 13);
    expect_same_bits(append(never, more), append(session, more),
                     cat("type ", static_cast<int>(type)));
  }
}

TEST_F(SavedFile, IsNeverHalfWritten) {
  Session session = open();
  expect_contains(error_of(Errc::bad_request, [&] { session.save(dir / "empty"); }),
                  "no text to save");
  append(session, random_tokens(30, 14));
  expect_contains(error_of(Errc::bad_file, [&] { session.save(dir / "no/such/folder"); }),
                  "cannot be created");
  expect_contains(error_of(Errc::bad_file, [&] { session.save("/dev/full"); }),
                  "cannot be written");

  // A disk that is full in the middle of it.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{good.size() / 4, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string error = error_of(Errc::bad_file, [&] { session.save(dir / "good"); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_contains(error, "cannot be written");
  EXPECT_EQ(read_file(dir / "good"), good) << "the older file stays";
  EXPECT_FALSE(fs::exists(dir / "good.partial"));
  EXPECT_FALSE(fs::exists(dir / "empty"));
  session.save(dir / "good");
  EXPECT_NE(read_file(dir / "good"), good);
}

// A device that fails while the data comes leaves an empty text, which goes on.
TEST(SavedTextOnADevice, ThatFailsLeavesAnEmptyText) {
  const OpenModel model("qwen35moe", "Q8_0");
  TempDir dir;
  const std::vector<TokenId> tokens = random_tokens(50, 15);
  bool fails = false;
  Place place{.n_ctx = 96};
  place.device.before_copy = [&](int64_t) {
    if (fails) throw Error(Errc::device, "the link is down");
  };
  Placed placed(model, place);
  const ModelStamp stamp = make_stamp(model.file(), 261);
  const Logits expected = placed.run(tokens);
  save_text(dir / "t", placed.runtime.text_memory(), {}, stamp);
  placed.runtime.copies().finish();
  fails = true;
  expect_contains(error_of(Errc::device,
                           [&] { load_text(dir / "t", placed.runtime.text_memory(), {}, stamp); }),
                  "link");
  fails = false;
  EXPECT_EQ(placed.runtime.n_tokens({}), 0);
  EXPECT_EQ(placed.runtime.kv_pages().n_free, placed.runtime.kv_pages().n_pages);
  expect_same_bits(expected, placed.run(tokens), "after the fault");
}

// A fork shares pages; what is loaded over it must not show in the text it is of.
TEST(SavedTextOnADevice, LeavesTextsThatSharePagesAlone) {
  const OpenModel model("qwen3moe", "Q8_0");
  TempDir dir;
  const ModelStamp stamp = make_stamp(model.file(), 261);
  const std::vector<TokenId> text = random_tokens(40, 16), other = random_tokens(44, 17);
  Placed placed(model, {.n_ctx = 96, .n_sequences = 3});
  ExpertRuntime& runtime = placed.runtime;
  const auto take = [&](std::span<const TokenId> tokens, SequenceId sequence) {
    Logits all;
    for (const TokenId token : tokens) {
      runtime.step(std::vector<StepRow>{{token, sequence, true}}, policy::Phase::decode,
                   {[&](int64_t, std::span<const float> logits) {
                     all.insert(all.end(), logits.begin(), logits.end());
                   }});
    }
    return all;
  };
  take(text, SequenceId(0));
  take(other, SequenceId(1));
  save_text(dir / "t", runtime.text_memory(), SequenceId(1), stamp);
  const Logits behind_other = take(random_tokens(3, 18), SequenceId(1));
  runtime.fork(SequenceId(0), SequenceId(2), 40);
  load_text(dir / "t", runtime.text_memory(), SequenceId(2), stamp);
  expect_same_bits(behind_other, take(random_tokens(3, 18), SequenceId(2)), "the loaded one");
  const std::vector<TokenId> rest = random_tokens(5, 19);
  std::vector<TokenId> all = text;
  all.insert(all.end(), rest.begin(), rest.end());
  const Logits alone = run_alone(*model, all, 1);
  expect_same_bits(std::span(alone).last(5 * 261), take(rest, SequenceId(0)), "the shared one");
}

}  // namespace
}  // namespace sluice::engine::test
