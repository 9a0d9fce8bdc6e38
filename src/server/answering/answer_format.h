// How one API shows an answer: whole, or as the pieces of a stream. Each endpoint that makes text
// has one; answer_run.h calls it, never from two threads at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/answering/answer_parts.h"
#include "server/api_error.h"
#include "server/json.h"

namespace sluice::server {

class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // The whole answer.
  virtual Json whole(const std::vector<Choice>& choices) = 0;

  // A stream: bytes for its beginning, for what a token of a choice added, for the end of a choice,
  // and for the end of all.
  virtual std::string content_type() const { return "text/event-stream"; }
  virtual std::string begin() { return ""; }
  virtual std::string delta(int choice, const Delta& delta) = 0;
  virtual std::string choice_end(int choice, const Choice& complete) = 0;
  virtual std::string end(const std::vector<Choice>& choices) = 0;
  // What went wrong when the stream had begun; its last piece.
  virtual std::string failure(const ApiError& error) = 0;
};

// Server-sent events. A name is for those APIs that have one.
inline std::string sse(const Json& json) { return "data: " + dump(json) + "\n\n"; }
inline std::string sse(const std::string& name, const Json& json) {
  return "event: " + name + "\ndata: " + dump(json) + "\n\n";
}

}  // namespace sluice::server
