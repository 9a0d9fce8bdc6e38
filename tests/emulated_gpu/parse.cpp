// PTX text to Kernel (program.h): declarations, labels, operands. What an instruction does is found
// by handler_of().
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "emulated_gpu/memory.h"
#include "emulated_gpu/program.h"
#include "emulated_gpu/ptx_text.h"

namespace sluice::emulated_gpu {
class Parser {
 public:
  explicit Parser(Module& module) : module_(module), text_(module.text_) {}
  void run();
  void parse_kernel(size_t at);

 private:
  struct Register {
    Bank bank;
    int index;
  };

  std::string_view until(char end);
  void top_level(std::string_view statement, bool has_value);
  void entry(std::string_view head);
  void body();
  void declare(std::string_view statement);
  void declare_registers(std::string_view statement);
  void instruction(std::string_view statement);
  void place_shared(std::string_view statement);
  Operand value(std::string_view text, Bank wanted);
  Operand constant(uint64_t bits, Bank bank);
  Operand address(std::string_view text, Instruction& i);
  const Symbol* symbol(std::string_view name) const;
  Operand register_of(std::string_view name);
  void count_lines(size_t to);

  Module& module_;
  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  int line_ = 1;
  Kernel* kernel_ = nullptr;
  std::unordered_map<std::string, Symbol> symbols_;
  std::vector<std::unordered_map<std::string, Register>> registers_;  // by scope
  std::unordered_map<std::string, int> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;
  std::unordered_map<uint64_t, int> word_constants_, wide_constants_;
};

void Parser::count_lines(size_t to) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<long>(counted_),
                                       text_.begin() + static_cast<long>(to), '\n'));
  counted_ = to;
}

std::string_view Parser::until(char end) {
  const size_t to = text_.find(end, at_);
  if (to == std::string_view::npos) refuse(line_, "the text ends early", text_.substr(at_, 40));
  const std::string_view out = text_.substr(at_, to - at_);
  at_ = to + 1;
  return trimmed(out);
}

// Comments are blanks already.
void Parser::run() {
  while (true) {
    at_ = text_.find_first_not_of(" \t\r\n", at_);
    if (at_ == std::string_view::npos || text_[at_] == '\0') return;
    count_lines(at_);
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with(".version") || rest.starts_with(".target") ||
        rest.starts_with(".address_size") || rest.starts_with(".file")) {
      until('\n');
      continue;
    }
    const size_t end = rest.find_first_of(";({");
    if (end == std::string_view::npos) refuse(line_, "the text ends early", rest.substr(0, 40));
    if (rest[end] == '(') {
      const std::string_view head = rest.substr(0, end);
      if (head.find(".entry") == std::string_view::npos) refuse(line_, "not a kernel", head);
      module_.places_[std::string(trimmed(head.substr(head.find(".entry") + 6)))] = at_;
      at_ = text_.find('{', at_);
      int depth = 0;
      do {
        depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
        ++at_;
      } while (depth > 0);
      continue;
    }
    const std::string_view statement = until(';');
    top_level(statement, statement.find('=') != std::string_view::npos);
  }
}

void Parser::parse_kernel(size_t at) {
  at_ = at;
  count_lines(at_);
  const std::string_view rest = text_.substr(at_);
  entry(rest.substr(0, rest.find('(')));
}

void Parser::top_level(std::string_view statement, bool has_value) {
  if (statement.find(".shared") != std::string_view::npos) {
    if (statement.find(".extern") == std::string_view::npos) {
      refuse(line_, "shared memory outside of kernels", statement);
    }
    module_.symbols_[variable_of(statement, line_).name] = {Where::dynamic, 0};
    return;
  }
  if (statement.find(".global") == std::string_view::npos &&
      statement.find(".const") == std::string_view::npos) {
    refuse(line_, "unknown", statement);
  }
  const Variable v = variable_of(statement.substr(0, statement.find('=')), line_);
  const auto n_words = static_cast<size_t>(v.n_bytes / 8 + 1);
  module_.globals_.push_back(std::make_unique<uint64_t[]>(n_words));
  auto* const bytes = reinterpret_cast<std::byte*>(module_.globals_.back().get());
  add_region(bytes, 8 * n_words, MemoryOf::module);
  if (has_value) {
    std::string_view values = trimmed(statement.substr(statement.find('=') + 1));
    if (values.starts_with('{')) values = values.substr(1, values.size() - 2);
    int i = 0;
    for (const std::string_view one : split(values, ',')) {
      if (one.empty()) continue;
      const uint64_t bits =
          one.starts_with("0f")  ? std::stoull(std::string(one.substr(2)), nullptr, 16)
          : one.starts_with("-") ? static_cast<uint64_t>(std::stoll(std::string(one), nullptr, 0))
                                 : std::stoull(std::string(one), nullptr, 0);
      std::memcpy(bytes + i++ * v.element, &bits, static_cast<size_t>(v.element));
    }
  }
  module_.symbols_[v.name] = {Where::global, reinterpret_cast<uint64_t>(bytes)};
}

void Parser::entry(std::string_view head) {
  if (head.find(".entry") == std::string_view::npos) refuse(line_, "not a kernel", head);
  Kernel kernel;
  kernel.name = std::string(trimmed(head.substr(head.find(".entry") + 6)));
  symbols_ = module_.symbols_;
  at_ = text_.find('(', at_) + 1;
  for (const std::string_view text : split_operands(until(')'))) {
    const Variable v = variable_of(text, line_);
    kernel.param_bytes = rounded(kernel.param_bytes, v.align);
    kernel.params.push_back({v.name, kernel.param_bytes, v.n_bytes});
    symbols_[v.name] = {Where::param, static_cast<uint64_t>(kernel.param_bytes)};
    kernel.param_bytes += v.n_bytes;
  }
  const std::string_view limits = until('{');
  if (const size_t i = limits.find(".maxntid"); i != std::string_view::npos) {
    kernel.max_threads = std::stoi(std::string(trimmed(limits.substr(i + 8))));
  }
  kernel_ = &module_.kernels_.insert_or_assign(kernel.name, std::move(kernel)).first->second;
  kernel_->n_words = static_cast<int>(Special::count);
  kernel_->n_wides = 1;
  registers_.assign(1, {});
  labels_.clear();
  branches_.clear();
  word_constants_.clear();
  wide_constants_.clear();
  body();
}

void Parser::body() {
  // Dynamic shared memory stands behind all other, whose size has to be known first.
  const size_t begin = at_;
  int depth = 1;
  size_t end = at_;
  for (; depth > 0; ++end) depth += text_[end] == '{' ? 1 : text_[end] == '}' ? -1 : 0;
  for (size_t i = text_.find(".shared .align", begin); i < end;
       i = text_.find(".shared .align", i + 1)) {
    place_shared(text_.substr(i, text_.find(';', i) - i));
  }
  kernel_->static_bytes = static_cast<size_t>(kernel_->shared_bytes);
  const auto dynamic = static_cast<uint64_t>(rounded(kernel_->shared_bytes, 128));
  kernel_->shared_bytes = static_cast<int>(dynamic);
  for (auto& [name, s] : symbols_) {
    if (s.where == Where::dynamic) s = {Where::shared, dynamic};
  }
  while (true) {
    at_ = text_.find_first_not_of(" \t\r\n", at_);
    count_lines(at_);
    const char c = text_[at_];
    if (c == '{') {
      registers_.emplace_back();
      ++at_;
      continue;
    }
    if (c == '}') {
      ++at_;
      registers_.pop_back();
      if (registers_.empty()) break;
      continue;
    }
    const size_t stop = text_.find_first_of(";:", at_);
    if (text_[stop] == ':' && text_[stop + 1] != ':' &&
        text_.substr(at_, stop - at_).find_first_of(" \t") == std::string_view::npos) {
      labels_[std::string(text_.substr(at_, stop - at_))] = static_cast<int>(kernel_->code.size());
      at_ = stop + 1;
      continue;
    }
    const std::string_view statement = until(';');
    if (statement.empty()) continue;
    if (statement.front() == '.') {
      declare(statement);
    } else {
      instruction(statement);
    }
  }
  for (const auto& [i, label] : branches_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) refuse(line_, "no such label", label);
    kernel_->code[i].target = found->second;
  }
  Instruction last;
  last.kind = Kind::exit;
  last.text = "ret";
  kernel_->code.push_back(last);
}

void Parser::place_shared(std::string_view statement) {
  const Variable v = variable_of(statement, line_);
  kernel_->shared_bytes = rounded(kernel_->shared_bytes, v.align);
  symbols_[v.name] = {Where::shared, static_cast<uint64_t>(kernel_->shared_bytes)};
  kernel_->shared_bytes += v.n_bytes;
}

void Parser::declare(std::string_view statement) {
  if (statement.starts_with(".reg")) return declare_registers(statement);
  if (statement.starts_with(".local")) {
    const Variable v = variable_of(statement, line_);
    kernel_->local_bytes = rounded(kernel_->local_bytes, v.align);
    symbols_[v.name] = {Where::local, static_cast<uint64_t>(kernel_->local_bytes)};
    kernel_->local_bytes += v.n_bytes;
    return;
  }
  if (statement.starts_with(".shared") || statement.starts_with(".pragma") ||
      statement.starts_with(".loc")) {
    return;
  }
  refuse(line_, "unknown", statement);
}

// ".reg .b32 %r<685>" or ".reg .pred p"
void Parser::declare_registers(std::string_view statement) {
  std::string_view rest = trimmed(statement.substr(4));
  const size_t end = rest.find_first_of(" \t");
  const std::string_view type = rest.substr(0, end);
  const int n_bytes = bytes_of(type);
  const Bank bank = type == ".pred" ? Bank::predicate : n_bytes == 8 ? Bank::wide : Bank::word;
  if (type != ".pred" && (n_bytes < 1 || n_bytes > 8)) refuse(line_, "unknown type", statement);
  int& n = bank == Bank::predicate ? kernel_->n_predicates
           : bank == Bank::wide    ? kernel_->n_wides
                                   : kernel_->n_words;
  for (const std::string_view name : split(rest.substr(end), ',')) {
    const size_t many = name.find('<');
    if (many == std::string_view::npos) {
      registers_.back()[std::string(name)] = {bank, n++};
      continue;
    }
    const int count = std::stoi(std::string(name.substr(many + 1)));
    for (int i = 0; i < count; ++i) {
      registers_.back()[std::string(name.substr(0, many)) + std::to_string(i)] = {bank, n++};
    }
  }
}

Operand Parser::register_of(std::string_view name) {
  const std::string key(name);
  for (auto scope = registers_.rbegin(); scope != registers_.rend(); ++scope) {
    if (const auto found = scope->find(key); found != scope->end()) {
      return {found->second.bank, false, found->second.index};
    }
  }
  constexpr std::string_view kSpecial[] = {
      "%tid.x",   "%tid.y",   "%tid.z",   "%ntid.x",          "%ntid.y",          "%ntid.z",
      "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x",        "%nctaid.y",        "%nctaid.z",
      "%laneid",  "%warpid",  "%smid",    "%cluster_ctarank", "%cluster_nctarank"};
  static_assert(std::size(kSpecial) == static_cast<size_t>(Special::count));
  for (size_t i = 0; i < std::size(kSpecial); ++i) {
    if (name == kSpecial[i]) return {Bank::word, false, static_cast<int>(i)};
  }
  return {};
}

const Symbol* Parser::symbol(std::string_view name) const {
  const auto found = symbols_.find(std::string(name));
  return found == symbols_.end() ? nullptr : &found->second;
}

Operand Parser::constant(uint64_t bits, Bank bank) {
  if (bank == Bank::wide) {
    const auto [it, is_new] =
        wide_constants_.try_emplace(bits, static_cast<int>(wide_constants_.size()));
    if (is_new) kernel_->wide_constants.insert(kernel_->wide_constants.end(), kLanes, bits);
    return {bank, false, ~it->second};
  }
  const auto word = static_cast<uint32_t>(bits);
  const auto [it, is_new] =
      word_constants_.try_emplace(word, static_cast<int>(word_constants_.size()));
  if (is_new) kernel_->word_constants.insert(kernel_->word_constants.end(), kLanes, word);
  return {Bank::word, false, ~it->second};
}

// A register, a number, or where a symbol stands; of a number `wanted` says how wide it is.
Operand Parser::value(std::string_view text, Bank wanted) {
  if (text == "_") return {};
  const bool is_negated = text.starts_with('!');
  if (is_negated) text.remove_prefix(1);
  if (Operand r = register_of(text); r.bank != Bank::none) {
    r.is_negated = is_negated;
    return r;
  }
  if (text == "%globaltimer" || text == "%clock64" || text == "%clock") return {};
  if (text.starts_with("0f") || text.starts_with("0F")) {
    return constant(std::stoull(std::string(text.substr(2)), nullptr, 16), Bank::word);
  }
  const char c = text.front();
  if ((c >= '0' && c <= '9') || c == '-') {
    std::string digits(text);
    if (digits.back() == 'U') digits.pop_back();
    const uint64_t bits = c == '-' ? static_cast<uint64_t>(std::stoll(digits, nullptr, 0))
                                   : std::stoull(digits, nullptr, 0);
    return constant(bits, wanted);
  }
  if (const Symbol* s = symbol(text)) {
    if (s->where == Where::param) refuse(line_, "a parameter's place here", text);
    return constant(s->at, wanted);
  }
  refuse(line_, "unknown operand", text);
}

// "[%rd1+16]", "[symbol+8]": the base; its offset is the instruction's.
Operand Parser::address(std::string_view text, Instruction& i) {
  text = trimmed(text.substr(1, text.size() - 2));
  const size_t plus = text.find('+');
  const std::string_view base = trimmed(text.substr(0, plus));
  if (plus != std::string_view::npos) {
    i.offset += std::stoll(std::string(trimmed(text.substr(plus + 1))), nullptr, 0);
  }
  if (const Operand r = register_of(base); r.bank != Bank::none) return r;
  if (const Symbol* s = symbol(base)) {
    if (s->where == Where::param) {
      i.offset += static_cast<int64_t>(s->at);
      return {Bank::wide, false, kParamRegister};
    }
    return constant(s->at, Bank::wide);
  }
  return value(base, Bank::wide);
}

void Parser::instruction(std::string_view statement) {
  Instruction i;
  i.line = line_;
  i.text = statement;
  if (statement.front() == '@') {
    const size_t end = statement.find_first_of(" \t\n");
    const Operand guard = value(statement.substr(1, end - 1), Bank::predicate);
    i.guard = guard.index;
    i.guard_is_negated = guard.is_negated;
    statement = trimmed(statement.substr(end));
  }
  const size_t end = std::min(statement.find_first_of(" \t\n"), statement.size());
  const std::vector<std::string_view> name = split(statement.substr(0, end), '.');
  std::vector<std::string_view> operands = split_operands(statement.substr(end));
  if (name[0] == "bra") {
    i.kind = Kind::branch;
    branches_.emplace_back(kernel_->code.size(), std::string(operands.at(0)));
    kernel_->code.push_back(i);
    return;
  }
  if (name[0] == "ret" || name[0] == "exit") {
    i.kind = Kind::exit;
    kernel_->code.push_back(i);
    return;
  }
  // Where a parameter stands is known when the kernel begins: a sum of two registers.
  if (name[0] == "mov" && operands.size() == 2) {
    const Symbol* const s = symbol(operands[1]);
    if (s && s->where == Where::param) {
      const std::vector<std::string_view> sum = {"add", "s64"};
      i.run = handler_of(sum, i);
      i.first = static_cast<uint32_t>(kernel_->operands.size());
      kernel_->operands.push_back(value(operands[0], Bank::wide));
      kernel_->operands.push_back({Bank::wide, false, kParamRegister});
      kernel_->operands.push_back(constant(s->at, Bank::wide));
      kernel_->code.push_back(i);
      return;
    }
    if (operands[1] == "%globaltimer" || operands[1] == "%clock64" || operands[1] == "%clock") {
      i.imm = operands[1] == "%globaltimer" ? 1 : 2;
      const std::vector<std::string_view> clock = {"mov", "clock"};
      i.run = handler_of(clock, i);
      i.first = static_cast<uint32_t>(kernel_->operands.size());
      kernel_->operands.push_back(value(operands[0], Bank::wide));
      kernel_->code.push_back(i);
      return;
    }
  }
  i.run = handler_of(name, i);
  if (!i.run) refuse(line_, "unknown instruction", i.text);
  const std::string_view last = name.back();
  const bool is_wide = last == "u64" || last == "s64" || last == "b64";
  // Of shifts the amount, of a field the place and the size, and of a wide product the factors have
  // 32 bits.
  const int first_word = name[0] == "shl" || name[0] == "shr" || name[0] == "bfe" ? 2
                         : name[0] == "bfi"                                       ? 3
                                                                                  : 99;
  i.first = static_cast<uint32_t>(kernel_->operands.size());
  std::vector<Operand> parsed;
  int n_plain = 0;
  for (const std::string_view text : operands) {
    if (text.front() == '[') {
      parsed.push_back(address(text, i));
      continue;
    }
    const bool is_vector = text.front() == '{';
    const auto parts = is_vector ? split_operands(text.substr(1, text.size() - 2))
                                 : std::vector<std::string_view>{text};
    for (const std::string_view part : parts) {
      const Bank wanted = is_wide && n_plain < first_word && !(name[1] == "wide" && n_plain > 0)
                              ? Bank::wide
                              : Bank::word;
      const size_t bar = part.find('|');
      if (bar != std::string_view::npos) {  // a result and a predicate
        parsed.push_back(value(part.substr(0, bar), wanted));
        parsed.push_back(value(part.substr(bar + 1), wanted));
      } else {
        parsed.push_back(value(part, wanted));
      }
      // mad.wide adds 64 bits.
      if (name[0] == "mad" && name[1] == "wide" && n_plain == 3 && parsed.back().index < 0 &&
          parsed.back().bank == Bank::word) {
        const auto at = static_cast<size_t>(~parsed.back().index) * kLanes;
        parsed.back() = constant(static_cast<uint64_t>(static_cast<int64_t>(
                                     static_cast<int32_t>(kernel_->word_constants[at]))),
                                 Bank::wide);
      }
      ++n_plain;
    }
    if (is_vector && (name[0] == "ld" || name[0] == "st")) {
      i.n_values = static_cast<uint8_t>(parts.size());
    }
  }
  // shfl and setp may leave out the second result.
  if ((name[0] == "shfl" || name[0] == "setp") && operands[0].find('|') == std::string_view::npos) {
    parsed.insert(parsed.begin() + 1, Operand{});
  }
  // What comes in a mov of a vector: {lo, hi} to 64 bits or back.
  if (name[0] == "mov" && operands.size() == 2) {
    i.imm = operands[0].front() == '{' ? 1 : operands[1].front() == '{' ? 2 : 0;
    i.n_values = static_cast<uint8_t>(parsed.size() - 1);
  }
  if (i.kind == Kind::block_barrier || name[0] == "cp" || name[0] == "shfl" || name[0] == "setp") {
    parsed.resize(std::max<size_t>(parsed.size(), 6));  // what is left out is none
  }
  kernel_->operands.insert(kernel_->operands.end(), parsed.begin(), parsed.end());
  kernel_->code.push_back(i);
}

Module::Module(std::string text) : text_(std::move(text)) {
  for (size_t i = 0; i + 1 < text_.size(); ++i) {
    if (text_[i] == '/' && text_[i + 1] == '/') {
      while (i < text_.size() && text_[i] != '\n') text_[i++] = ' ';
    } else if (text_[i] == '/' && text_[i + 1] == '*') {
      const size_t end = text_.find("*/", i) + 2;
      for (; i < end; ++i) text_[i] = text_[i] == '\n' ? '\n' : ' ';
    }
  }
  Parser(*this).run();
}

const Kernel* Module::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = kernels_.find(name); found != kernels_.end()) return &found->second;
  const auto place = places_.find(name);
  if (place == places_.end()) return nullptr;
  Parser(*this).parse_kernel(place->second);
  return &kernels_.at(name);
}

std::vector<std::string> Module::names() const {
  std::vector<std::string> out;
  for (const auto& [name, _] : places_) out.push_back(name);
  return out;
}

}  // namespace sluice::emulated_gpu
