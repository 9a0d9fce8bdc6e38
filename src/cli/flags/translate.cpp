// See translate.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/translate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "cli/flags/foreign_flags.h"

namespace sluice::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "-", "-1" and "-.5" are values.
bool is_flag(std::string_view arg) {
  return arg.size() > 1 && arg[0] == '-' && !is_digit(arg[1]) && arg[1] != '.';
}

// "-c4096" of a flag -c that takes a value; anything else of several letters is one name.
bool has_joined_number(std::string_view arg, const KnownFlags& known) {
  return arg.size() > 2 && arg[1] != '-' && is_digit(arg[2]) &&
         known.takes_value(arg.substr(0, 2)).value_or(false);
}

bool is_on_off(std::string_view value) {
  constexpr std::array<std::string_view, 8> kValues = {"on", "off",  "auto",  "0",
                                                       "1",  "true", "false", "disabled"};
  return std::ranges::find(kValues, value) != kValues.end();
}

class Translator {
 public:
  Translator(const std::vector<std::string>& args, const KnownFlags& known)
      : args_(args), known_(known) {}

  Translation run() {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_++];
      if (arg == "--") {
        out_.args.insert(out_.args.end(), args_.begin() + static_cast<std::ptrdiff_t>(at_ - 1),
                         args_.end());
        break;
      }
      if (!is_flag(arg) || has_joined_number(arg, known_)) {
        out_.args.push_back(arg);
      } else {
        take_flag(arg);
      }
    }
    return std::move(out_);
  }

 private:
  void take_flag(const std::string& arg) {
    const size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const bool is_joined = equals != std::string::npos;
    const bool has_next = is_joined || at_ < args_.size();
    const std::string next = is_joined ? arg.substr(equals + 1) : has_next ? args_[at_] : "";
    const auto own = known_.takes_value(name);
    if (const ForeignFlag* row = has_next ? find_foreign(known_.command, name, next) : nullptr) {
      if (!is_joined) ++at_;
      return take(*row, cat(name, " ", next), std::nullopt);
    }
    if (own) {
      out_.args.push_back(arg);
      if (*own && !is_joined && has_next) out_.args.push_back(args_[at_++]);
      return;
    }
    const ForeignFlag* row = find_foreign(known_.command, name);
    if (!row) refuse_unknown(name);
    const bool takes =
        row->takes == Takes::value || (row->takes == Takes::on_off && is_on_off(next));
    if (takes && !has_next) throw FlagRefused(cat(name, " needs a value"));
    if (takes && !is_joined) ++at_;
    take(*row, name, row->takes == Takes::value ? std::optional(next) : std::nullopt);
  }

  void take(const ForeignFlag& row, const std::string& named,
            const std::optional<std::string>& value) {
    switch (row.meaning) {
      case Meaning::none:
        out_.notes.push_back(cat(named, " has no meaning here: ", row.why));
        return;
      case Meaning::absent:
        throw FlagRefused(cat(named, " is not supported: ", row.why));
      case Meaning::same:
        break;
    }
    // "--moe cpu", "--predict", "--json-schema @"
    std::string_view rest = row.ours;
    const bool joins = rest.ends_with('@');
    std::vector<std::string> words;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      words.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (is_flag(words.front()) && !known_.takes_value(words.front())) {
      throw FlagRefused(cat(named, " (here ", words.front(), ") is no flag of sluice ",
                            known_.command, whose(words.front())));
    }
    if (value && joins) {
      words.back() += *value;
    } else if (value) {
      words.push_back(*value);
    }
    out_.args.insert(out_.args.end(), words.begin(), words.end());
  }

  // ": sluice run has it"
  std::string whose(const std::string& name) const {
    const std::string owner = known_.owner(name);
    if (owner.empty()) return "";
    const bool is_asked = known_.command == "serve" && owner == "run";
    return cat(": sluice ", owner, " has it",
               is_asked ? ", and here each request says it (docs/serve.md)" : "");
  }

  [[noreturn]] void refuse_unknown(const std::string& name) const {
    if (const std::string text = whose(name); !text.empty()) {
      throw FlagRefused(cat(name, " is no flag of sluice ", known_.command, text));
    }
    std::vector<std::string> names = known_.names;
    for (const ForeignFlag& row : foreign_flags()) {
      const bool is_here = row.command.empty() || row.command == known_.command;
      if (row.meaning == Meaning::same && is_here)
        names.emplace_back(row.names.substr(0, row.names.find(',')));
    }
    const std::string similar = nearest(name, names);
    throw FlagRefused(cat(name, " is no flag of sluice ", known_.command,
                          similar.empty() ? "" : cat(" (did you mean ", similar, "?)")));
  }

  const std::vector<std::string>& args_;
  const KnownFlags& known_;
  size_t at_ = 0;
  Translation out_;
};

// Letters to insert, to remove, to change or to swap with the next one.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> older, before(b.size() + 1), now(b.size() + 1);
  std::iota(before.begin(), before.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({before[j] + 1, now[j - 1] + 1, changed});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) now[j] = std::min(now[j], older[j - 2] + 1);
    }
    older = std::exchange(before, now);
  }
  return before.back();
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& other : names) {
    const size_t d = distance(name, other);
    if (d < least) {
      least = d;
      best = other;
    }
  }
  return best;
}

Translation translate(const std::vector<std::string>& args, const KnownFlags& known) {
  return Translator(args, known).run();
}

}  // namespace sluice::cli
