// From the bytes of tokens to what a person reads: whole characters, without stop strings, thinking
// and answer apart. `sluice run` and the server send all answers through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/stop_strings.h"
#include "text/thinking.h"
#include "text/utf8_stream.h"

namespace sluice::chat {

class TextPipe {
 public:
  TextPipe(std::vector<std::string> stops, text::ThinkingSplitter::State start,
           text::ThinkingSplitter::Sink sink)
      : stops_(std::move(stops)), splitter_(start, std::move(sink)) {}

  // Whether to go on.
  bool push(std::string_view bytes) {
    splitter_.push(stops_.push(utf8_.push(bytes)));
    return !stops_.hit();
  }
  void finish() {
    splitter_.push(stops_.push(utf8_.flush()));
    splitter_.push(stops_.finish());
    splitter_.finish();
  }
  bool stopped() const { return stops_.hit(); }
  const std::string& stop_text() const { return stops_.found(); }

 private:
  text::Utf8Stream utf8_;
  text::StopStrings stops_;
  text::ThinkingSplitter splitter_;
};

}  // namespace sluice::chat
