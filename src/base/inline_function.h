// A function object that holds what it captured in itself, up to so many bytes: it never asks for
// memory. Move-only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace sluice {

template <size_t kBytes>
class InlineFunction {
 public:
  InlineFunction() = default;

  template <typename Call>
  requires(!std::is_same_v<std::decay_t<Call>, InlineFunction> && std::is_invocable_v<Call&>)
      InlineFunction(Call&& call) {  // NOLINT(google-explicit-constructor): as std::function
    using Held = std::decay_t<Call>;
    static_assert(sizeof(Held) <= kBytes, "captures more than this function has room for");
    static_assert(alignof(Held) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Held>);
    new (held_) Held(std::forward<Call>(call));
    call_ = [](void* held) { (*static_cast<Held*>(held))(); };
    // Moves to `to` and destroys; without `to` only the latter.
    move_ = [](void* held, void* to) {
      Held& from = *static_cast<Held*>(held);
      if (to) new (to) Held(std::move(from));
      from.~Held();
    };
  }

  InlineFunction(InlineFunction&& other) noexcept { take(other); }
  InlineFunction& operator=(InlineFunction&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  InlineFunction(const InlineFunction&) = delete;
  InlineFunction& operator=(const InlineFunction&) = delete;
  ~InlineFunction() { drop(); }

  void operator()() const { call_(held_); }

 private:
  void take(InlineFunction& other) {
    if (other.move_) other.move_(other.held_, held_);
    call_ = std::exchange(other.call_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
  }
  void drop() {
    if (move_) move_(held_, nullptr);
    call_ = nullptr;
    move_ = nullptr;
  }

  void (*call_)(void* held) = nullptr;
  void (*move_)(void* held, void* to) = nullptr;
  alignas(std::max_align_t) mutable std::byte held_[kBytes];
};

}  // namespace sluice
