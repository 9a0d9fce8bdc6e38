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
  requires(!std::is_same_v<Call, InlineFunction> && std::is_invocable_v<Call&>)
      InlineFunction(Call call) {  // NOLINT(google-explicit-constructor): as std::function
    static_assert(sizeof(Call) <= kBytes, "captures more than this function has room for");
    static_assert(alignof(Call) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Call>);
    new (held_) Call(std::move(call));
    call_ = [](void* held) { (*static_cast<Call*>(held))(); };
    move_ = [](void* held, void* to) { new (to) Call(std::move(*static_cast<Call*>(held))); };
    destroy_ = [](void* held) { static_cast<Call*>(held)->~Call(); };
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
  // Leaves the other one empty.
  void take(InlineFunction& other) {
    if (other.move_) other.move_(other.held_, held_);
    call_ = other.call_, move_ = other.move_, destroy_ = other.destroy_;
    other.drop();
  }
  void drop() {
    if (destroy_) destroy_(held_);
    call_ = nullptr, move_ = nullptr, destroy_ = nullptr;
  }

  void (*call_)(void* held) = nullptr;
  void (*move_)(void* held, void* to) = nullptr;
  void (*destroy_)(void* held) = nullptr;
  alignas(std::max_align_t) mutable std::byte held_[kBytes];
};

}  // namespace sluice
