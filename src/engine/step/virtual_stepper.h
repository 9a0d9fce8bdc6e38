// Steps on the CPU alone, on a virtual clock: what they compute is real, how long they take is what
// the described machine would have needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "engine/step/stepper.h"

namespace sluice::engine {

class VirtualStepper final : public StepDriver {
 public:
  using StepSeconds = std::function<double(const StepSize& step)>;

  VirtualStepper(std::unique_ptr<Stepper> stepper, StepSeconds step_seconds)
      : stepper_(std::move(stepper)), step_seconds_(std::move(step_seconds)) {}

  void step(std::span<const StepRow> rows, policy::Phase phase,
            const StepListener& listener) override {
    stepper_->step(rows, phase, listener);
    seconds_ += step_seconds_(stepper_->size());
  }
  void truncate(SequenceId sequence, int n_tokens) override {
    stepper_->truncate(sequence, n_tokens);
  }
  void fork(SequenceId from, SequenceId to, int n_tokens) override {
    stepper_->fork(from, to, n_tokens);
  }
  TextMemory text_memory() override { return stepper_->text_memory(); }
  bool keeps_points() const override { return stepper_->keeps_points(); }
  WentBack went_back() const override { return stepper_->went_back(); }
  int kept_tokens(SequenceId sequence, int n_tokens) const override {
    return stepper_->kept_tokens(sequence, n_tokens);
  }
  int n_tokens(SequenceId sequence) const override { return stepper_->n_tokens(sequence); }
  int max_rows() const override { return stepper_->max_rows(); }
  uint64_t kv_bytes() const override { return stepper_->kv_bytes(); }
  KvPages kv_pages() const override { return stepper_->kv_pages(); }
  const RoutingLog& log() const override { return stepper_->log(); }
  double seconds() const override { return seconds_; }

 private:
  std::unique_ptr<Stepper> stepper_;
  StepSeconds step_seconds_;
  double seconds_ = 0.0;
};

}  // namespace sluice::engine
