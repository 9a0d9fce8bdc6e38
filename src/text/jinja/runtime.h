// What one rendering may use and has used: the memory of its values, its steps, its depth, its
// output, and the place it is at, which every error names. Lives for one rendering, on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/limits.h"
#include "text/jinja/location.h"
#include "text/jinja/values/value.h"

namespace sluice::text::jinja {

class Runtime {
 public:
  explicit Runtime(const Limits& limits);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The construct that is being run.
  Location at{0, 0};

  // --- limits; each throws Error (bad_request) when it is reached
  void step(uint64_t n = 1) {
    if (n > steps_left_) fail_steps();
    steps_left_ -= n;
  }
  void work(size_t n_bytes) { step(1 + n_bytes / kBytesPerStep); }
  void charge_output(size_t n_bytes);
  // That `n_bytes` more could be allocated: asked before something large is built.
  void expect_room(size_t n_bytes) const;

  // One evaluation inside another, for as long as it lives.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > runtime_.limits_.depth) runtime_.fail_depth();
    }
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

  // --- values; they live as long as the Runtime
  Value make_string(std::string text);
  Value make_string(std::string_view text) { return make_string(std::string(text)); }
  List& make_list();
  List& make_list(std::vector<Value> items);
  Dict& make_dict();
  void append(List& list, Value value);
  // Refuses what cannot be a key.
  void set(Dict& dict, Value key, Value value);
  template <typename T, typename... Args>
  T& make_object(Args&&... args) {
    charge(sizeof(T));
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T& made = *object;
    objects_.push_back(std::move(object));
    return made;
  }
  // Counts bytes that something else than these functions allocates.
  void charge(size_t n_bytes);

  // --- errors
  [[noreturn]] void fail(std::string_view what) const { fail_at(Errc::bad_request, at, what); }
  // "'x' is undefined" and the like; the value is undefined.
  [[noreturn]] void fail_undefined(Value value) const;
  // "<what> wants <expected>, not <kind of value>", or that the value is undefined.
  [[noreturn]] void fail_kind(std::string_view what, std::string_view expected, Value value) const;

 private:
  friend class Level;
  [[noreturn]] void fail_steps();
  [[noreturn]] void fail_depth();
  [[noreturn]] void fail_value_bytes() const;

  const Limits limits_;
  uint64_t steps_left_;
  int depth_ = 0;
  size_t output_bytes_ = 0;
  size_t value_bytes_ = 0;

  // Deques, because values point to the elements.
  std::deque<std::string> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::vector<std::unique_ptr<Object>> objects_;
};

// A string under construction, which the limits see while it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Runtime& runtime) : runtime_(runtime) {}
  void add(std::string_view text) {
    runtime_.work(text.size());
    runtime_.expect_room(text_.size() + text.size());
    text_.append(text);
  }
  void add(char c) { add(std::string_view(&c, 1)); }
  void repeat(std::string_view text, size_t n_times);
  size_t size() const { return text_.size(); }
  Runtime& runtime() { return runtime_; }
  std::string_view view() const { return text_; }
  Value finish() { return runtime_.make_string(std::move(text_)); }

 private:
  Runtime& runtime_;
  std::string text_;
};

}  // namespace sluice::text::jinja
