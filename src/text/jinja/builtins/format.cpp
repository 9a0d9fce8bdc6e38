// See format.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/format.h"

#include <cmath>

#include "text/jinja/builtins/format_spec.h"

namespace sluice::text::jinja {
namespace {

// One pass over "%s of %d".
class PercentFormat {
 public:
  PercentFormat(Runtime& runtime, std::string_view format, Value values)
      : runtime_(runtime), format_(format), values_(values), out_(runtime) {}

  Value run() {
    while (i_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', i_), format_.size());
      out_.add(format_.substr(i_, percent - i_));
      i_ = percent;
      if (i_ < format_.size()) fill_in();
    }
    // A list or dictionary may be there for nothing.
    const size_t n_wanted = values_.is(Kind::tuple) ? values_.as_list().items.size()
                            : values_.is(Kind::list) || values_.is(Kind::dict) ? 0
                                                                               : 1;
    if (n_used_ < n_wanted) {
      runtime_.fail("format: there are more values than places for them");
    }
    return out_.finish();
  }

 private:
  void fill_in();
  Value next_value();
  Value named_value();
  FormatSpec read_spec();
  char peek() const { return i_ < format_.size() ? format_[i_] : '\0'; }

  Runtime& runtime_;
  const std::string_view format_;
  const Value values_;
  TextBuilder out_;
  size_t i_ = 0;
  size_t n_used_ = 0;
};

Value PercentFormat::next_value() {
  const bool several = values_.is(Kind::tuple);
  if (n_used_ >= (several ? values_.as_list().items.size() : 1)) {
    runtime_.fail("format: there are fewer values than places for them");
  }
  const size_t i = n_used_++;
  return several ? values_.as_list().items[i] : values_;
}

Value PercentFormat::named_value() {
  const size_t end = format_.find(')', i_);
  if (end == std::string_view::npos) runtime_.fail("format: ')' is missing after '%('");
  if (!values_.is(Kind::dict)) runtime_.fail_kind("format: the values", "a dictionary", values_);
  const std::string_view name = format_.substr(i_ + 1, end - i_ - 1);
  const Value* value = values_.as_dict().find(name);
  if (value == nullptr) runtime_.fail(cat("format: there is no value ", quoted(name)));
  i_ = end + 1;
  return *value;
}

FormatSpec PercentFormat::read_spec() {
  FormatSpec spec;
  spec.align = '>';
  for (;; ++i_) {
    const char flag = peek();
    if (flag == '-') {
      spec.align = '<';
    } else if (flag == '0' && spec.align != '<') {
      spec.align = '=';
    } else if (flag == '+' || flag == ' ') {
      spec.sign = flag;
    } else if (flag == '#') {
      spec.alternate = true;
    } else if (flag != '0') {
      break;
    }
  }
  spec.width = read_size(runtime_, format_, i_).value_or(0);
  if (peek() == '.') {
    ++i_;
    spec.precision = static_cast<int>(read_size(runtime_, format_, i_).value_or(0));
  }
  return spec;
}

void PercentFormat::fill_in() {
  ++i_;
  if (peek() == '%') {
    ++i_;
    return out_.add('%');
  }
  const bool named = peek() == '(';
  Value value = named ? named_value() : Value::none();
  FormatSpec spec = read_spec();
  const char type = peek();
  constexpr std::string_view kTypes = "sradiufFeEgGxXo";
  if (type == '\0' || kTypes.find(type) == std::string_view::npos) {
    runtime_.fail("format: a letter of srdifegxo must follow '%'");
  }
  ++i_;
  if (!named) value = next_value();
  spec.type = type == 'a' ? 'r' : type == 'i' || type == 'u' ? 'd' : type;
  if (spec.align == '=') {
    const bool text = spec.type == 's' || spec.type == 'r';
    if (text) spec.align = '>';
    spec.fill.assign(1, text ? ' ' : '0');
  }
  if (spec.type == 'd' && value.is(Kind::number) && std::abs(value.as_number()) < 9e18) {
    value = Value::integer(static_cast<int64_t>(value.as_number()));  // %d cuts decimals off
  }
  format_value(out_, spec, value);
}

// One pass over "{} of {n}".
class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, std::string_view format, const Arguments& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments), out_(runtime) {}

  Value run() {
    for (size_t i = 0; i < format_.size();) {
      const char c = format_[i];
      if (c != '{' && c != '}') {
        const size_t end = std::min(format_.find_first_of("{}", i), format_.size());
        out_.add(format_.substr(i, end - i));
        i = end;
      } else if (i + 1 < format_.size() && format_[i + 1] == c) {
        out_.add(c);
        i += 2;
      } else {
        const size_t end = format_.find('}', i);
        if (c == '}' || end == std::string_view::npos) {
          runtime_.fail(cat("format: '", c, "' stands alone; write it twice to mean itself"));
        }
        fill_in(format_.substr(i + 1, end - i - 1));
        i = end + 1;
      }
    }
    return out_.finish();
  }

 private:
  void fill_in(std::string_view field) {
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view rest = field.substr(std::min(colon + 1, field.size()));
    std::string_view name = field.substr(0, colon);
    FormatSpec spec = parse_format_spec(runtime_, rest);
    if (name.ends_with("!r") || name.ends_with("!s")) {
      spec.type = name.back();
      name.remove_suffix(2);
    }
    format_value(out_, spec, value_of(name));
  }

  Value value_of(std::string_view name) {
    size_t end = 0;
    std::optional<size_t> position = read_size(runtime_, name, end);
    if (name.empty()) position = n_automatic_++;
    if (position && end == name.size()) {
      if (*position < arguments_.positional.size()) return arguments_.positional[*position];
      runtime_.fail(cat("format: there is no value number ", *position));
    }
    for (const NamedArgument& argument : arguments_.named) {
      if (argument.name == name) return argument.value;
    }
    runtime_.fail(cat("format: there is no value ", quoted(name)));
  }

  Runtime& runtime_;
  const std::string_view format_;
  const Arguments& arguments_;
  TextBuilder out_;
  size_t n_automatic_ = 0;
};

}  // namespace

Value format_percent(Runtime& runtime, std::string_view format, Value values) {
  return PercentFormat(runtime, format, values).run();
}

Value format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  return BraceFormat(runtime, format, arguments).run();
}

}  // namespace sluice::text::jinja
