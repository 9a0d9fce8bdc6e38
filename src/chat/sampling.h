// How tokens are chosen, with everything filled in: the user's wishes first, then what the model
// file recommends, then the defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/text_model.h"
#include "sampler/options.h"
#include "text/grammar/matcher.h"

namespace sluice::chat {

// dry_breakers: texts; empty: the defaults. A seed is drawn where none was given. Throws
// Errc::bad_request for what makes no sense.
sampler::SamplerOptions resolve_sampling(sampler::SamplerOptions user, const TextModel& model,
                                         const std::vector<std::string>& dry_breakers = {});

// Holds answers to a grammar.
std::unique_ptr<text::GrammarMatcher> make_matcher(text::Grammar grammar, const TextModel& model);

}  // namespace sluice::chat
