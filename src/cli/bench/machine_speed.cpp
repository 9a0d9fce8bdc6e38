// See machine_speed.h. Loops for x86-64 carry their own target; other CPUs run the plain ones.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/machine_speed.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#endif

#include "base/error.h"
#include "base/units.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kPieceBytes = kMiB;
constexpr double kReadSeconds = 0.1;  // for each reader
constexpr double kInt8Seconds = 0.05;
constexpr int64_t kInt8Rounds = 10'000;       // of a loop in one piece: about 50 us
constexpr int64_t kInt8PiecesPerThread = 32;  // enough that no thread waits long for the last

// Rates of passes over [0, n_pieces) for so many seconds; the best of them.
template <typename Body>
double best_rate(ThreadPool& pool, int64_t n_pieces, double units_per_piece, double seconds,
                 const Body& body) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto begin = Clock::now();
  double best = 0.0;
  do {
    const auto start = Clock::now();
    pool.parallel_for(n_pieces, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) body(i);
    });
    best = std::max(best, units_per_piece * static_cast<double>(n_pieces) / since(start));
  } while (since(begin) < seconds);
  return best;
}

// ---- Reading. A reader folds a piece into one number, so that no load can be left out.

using Reader = uint64_t (*)(const std::byte* bytes);

[[maybe_unused]] uint64_t read_plain(const std::byte* bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < kPieceBytes; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof(word));
    sum += word;
  }
  return sum;
}

#if defined(__x86_64__)

// kAhead: bytes that are asked for before they are loaded; 0 leaves it to the hardware. Past the
// end of the buffer that asks for nothing.
template <int kAhead>
[[gnu::target("avx512f")]] uint64_t read_avx512(const std::byte* bytes) {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  for (uint64_t i = 0; i < kPieceBytes; i += 128) {
    const std::byte* p = bytes + i;
    if constexpr (kAhead > 0) {
      _mm_prefetch(reinterpret_cast<const char*>(p + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(p + kAhead + 64), _MM_HINT_T0);
    }
    a = _mm512_xor_si512(a, _mm512_load_si512(p));
    b = _mm512_xor_si512(b, _mm512_load_si512(p + 64));
  }
  alignas(64) std::array<uint64_t, 8> words;
  _mm512_store_si512(words.data(), _mm512_xor_si512(a, b));
  return std::accumulate(words.begin(), words.end(), uint64_t{0});
}

template <int kAhead>
[[gnu::target("avx2")]] uint64_t read_avx2(const std::byte* bytes) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = a;
  for (uint64_t i = 0; i < kPieceBytes; i += 64) {
    const std::byte* p = bytes + i;
    if constexpr (kAhead > 0) {
      _mm_prefetch(reinterpret_cast<const char*>(p + kAhead), _MM_HINT_T0);
    }
    a = _mm256_xor_si256(a, _mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    b = _mm256_xor_si256(b, _mm256_load_si256(reinterpret_cast<const __m256i*>(p + 32)));
  }
  alignas(32) std::array<uint64_t, 4> words;
  _mm256_store_si256(reinterpret_cast<__m256i*>(words.data()), _mm256_xor_si256(a, b));
  return std::accumulate(words.begin(), words.end(), uint64_t{0});
}

// Which of the two reads faster differs from CPU to CPU, and by no more than the noise on some.
std::array<Reader, 2> readers() {
  if (__builtin_cpu_supports("avx512f")) return {read_avx512<0>, read_avx512<4096>};
  return {read_avx2<0>, read_avx2<4096>};
}

#else
std::array<Reader, 1> readers() { return {read_plain}; }
#endif

// Eight times the last cache, so that what a pass leaves there hardly helps the next; never more
// than an eighth of the machine's memory.
uint64_t buffer_bytes() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1 where it is not known
  const auto memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t wanted =
      std::clamp(8 * static_cast<uint64_t>(std::max(cache, 0L)), 256 * kMiB, 2 * kGiB);
  return std::max(std::min(wanted, memory / 8) / kPieceBytes, uint64_t{1}) * kPieceBytes;
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

struct Buffer {
  std::unique_ptr<std::byte, Free> memory;
  uint64_t n_bytes;

  std::byte* piece(int64_t i) const {
    return memory.get() + static_cast<uint64_t>(i) * kPieceBytes;
  }
};

// Touched first by the threads that will read it.
Buffer make_buffer(ThreadPool& pool) {
  constexpr uint64_t kHugePage = 2 * kMiB;
  const uint64_t n_bytes = buffer_bytes();
  void* memory = std::aligned_alloc(kHugePage, round_up(n_bytes, kHugePage));
  if (!memory) {
    throw Error(Errc::out_of_memory, cat("measuring the memory's speed takes ",
                                         format_bytes(n_bytes), "; free some memory"));
  }
  Buffer buffer{std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(memory)), n_bytes};
  ::madvise(memory, n_bytes, MADV_HUGEPAGE);  // refused is fine: then with small pages
  pool.parallel_for(
      static_cast<int64_t>(n_bytes / kPieceBytes), 1, [&](int64_t first, int64_t last, int) {
        std::memset(buffer.piece(first), 1, static_cast<uint64_t>(last - first) * kPieceBytes);
      });
  return buffer;
}

// ---- int8. Each loop keeps enough independent sums that latency does not show; their values mean
// nothing and may wrap.

struct Int8Loop {
  void (*run)(int64_t n_rounds);
  int64_t multiply_adds;  // of one round
  std::string_view instruction;
};

// Makes the compiler believe that somebody reads the value and changes it: sums that it knew to be
// equal would become one.
template <typename T>
void keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

[[maybe_unused]] void int8_plain(int64_t n_rounds) {
  std::array<int8_t, 64> a;
  std::array<int32_t, 64> sums{};
  a.fill(3);
  for (int64_t round = 0; round < n_rounds; ++round) {
    keep(a);
    for (size_t i = 0; i < a.size(); ++i) sums[i] += a[i] * a[a.size() - 1 - i];
  }
  keep(sums);
}

#if defined(__x86_64__)

constexpr int kSums = 12;  // latency 5, two a cycle, and some to spare

[[gnu::target("avx2")]] void int8_avx2(int64_t n_rounds) {
  __m256i a = _mm256_set1_epi8(3);
  keep(a);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[kSums] = {};
  keep(sums);
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      // Through the sum, so that the product is not the same in every round.
      const __m256i pairs = _mm256_maddubs_epi16(a, sum);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
  }
  keep(sums);
}

// As text: the compiler would move the sums between registers in every round.
[[gnu::target("avx2,avxvnni")]] void int8_avx_vnni(int64_t n_rounds) {
  const __m256i a = _mm256_set1_epi8(3);
  __m256i sums[kSums] = {};
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(sum) : "x"(a));
  }
}

[[gnu::target("avx512f,avx512vnni")]] void int8_avx512_vnni(int64_t n_rounds) {
  const __m512i a = _mm512_set1_epi8(3);
  __m512i sums[kSums] = {};
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(a));
  }
}

// Four sums of 16 x 16 from two tiles of 16 x 64 and two of 64 x 16: all eight tiles.
[[gnu::target("amx-tile,amx-int8")]] void int8_amx(int64_t n_rounds) {
  struct alignas(64) {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t n_rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  static_assert(sizeof(config) == 64);
  alignas(64) std::array<int8_t, 1024> tile;
  tile.fill(3);
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, tile.data(), 64);
  _tile_loadd(5, tile.data(), 64);
  _tile_loadd(6, tile.data(), 64);
  _tile_loadd(7, tile.data(), 64);
  for (int64_t round = 0; round < n_rounds; ++round) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

// Whether a tile instruction really runs: some virtual machines show the flag, grant the
// permission, and then call it illegal. So a child tries it.
bool runs_amx() {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    ::signal(SIGILL, SIG_DFL);
    int8_amx(1);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Whether the CPU has the tiles, and the kernel lets this process use them.
bool may_use_amx() {
  constexpr unsigned kTileAndInt8 = 1u << 24 | 1u << 25;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTileAndInt8) == kTileAndInt8 &&
         ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 && runs_amx();
}

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
}

Int8Loop int8_loop() {
  if (may_use_amx()) return {int8_amx, 4 * 16 * 16 * 64, "AMX"};
  if (__builtin_cpu_supports("avx512vnni")) return {int8_avx512_vnni, kSums * 64, "AVX-512 VNNI"};
  if (has_avx_vnni()) return {int8_avx_vnni, kSums * 32, "AVX VNNI"};
  return {int8_avx2, kSums * 32, "AVX2"};
}

#else
Int8Loop int8_loop() { return {int8_plain, 64, "plain"}; }
#endif

}  // namespace

double read_bytes_per_second(ThreadPool& pool) {
  const Buffer buffer = make_buffer(pool);
  std::atomic<uint64_t> sum{0};
  double best = 0.0;
  for (const Reader read : readers()) {
    const auto body = [&](int64_t piece) {
      sum.fetch_add(read(buffer.piece(piece)), std::memory_order_relaxed);
    };
    best = std::max(best, best_rate(pool, static_cast<int64_t>(buffer.n_bytes / kPieceBytes),
                                    double{kPieceBytes}, kReadSeconds, body));
  }
  return best;
}

Int8Speed int8_speed(ThreadPool& pool) {
  const Int8Loop loop = int8_loop();
  const double ops = 2.0 * static_cast<double>(loop.multiply_adds * kInt8Rounds);
  return {best_rate(pool, pool.n_threads() * kInt8PiecesPerThread, ops, kInt8Seconds,
                    [&](int64_t) { loop.run(kInt8Rounds); }),
          loop.instruction};
}

}  // namespace sluice::cli
