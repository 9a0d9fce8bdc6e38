// See globals.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/globals.h"

#include <string>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/builtins/strftime.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/objects.h"
#include "text/jinja/values/print.h"

namespace sluice::text::jinja {
namespace {

constexpr size_t kLongestMessage = 2000;

Value range(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  ArgumentReader reader(runtime, "range", arguments);
  const int64_t first = reader.next_integer("start");
  const std::optional<Value> second = reader.next_if_given("stop");
  const int64_t step = reader.next_integer_or("step", 1);
  reader.done();
  if (second && !second->is_integral()) {
    runtime.fail_kind("range: the argument 'stop'", "an integer", *second);
  }
  if (step == 0) reader.fail("'step' must not be 0");
  const int64_t stop = second ? second->as_integer() : first;
  List& numbers = runtime.make_list();
  for (int64_t i = second ? first : 0; step > 0 ? i < stop : i > stop;) {
    runtime.append(numbers, Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::list(numbers);
}

// From at most one dictionary or list of pairs, and from named arguments.
Dict& make_entries(Runtime& runtime, const Arguments& arguments) {
  const Value entries = Value::dict(runtime.make_dict());
  find_method(entries, "update")(runtime, entries, arguments);
  return entries.as_dict();
}

Value dict(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  return Value::dict(make_entries(runtime, arguments));
}

Value make_namespace(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  return Value::object(runtime.make_object<Namespace>(make_entries(runtime, arguments)));
}

Value raise_exception(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  ArgumentReader reader(runtime, "raise_exception", arguments);
  const Value message = to_text(runtime, reader.next("message"));
  reader.done();
  runtime.fail(cat("the template refuses: ", on_one_line(message.as_string(), kLongestMessage)));
}

// Nothing the first time it is called, its separator from then on.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(separator) {}
  std::string describe(Runtime& /*runtime*/) const override { return "<Joiner>"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    ArgumentReader(runtime, "joiner", arguments).done();
    return std::exchange(was_called_, true) ? separator_ : Value::string("");
  }

 private:
  const Value separator_;
  bool was_called_ = false;
};

Value joiner(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  ArgumentReader reader(runtime, "joiner", arguments);
  const Value separator = reader.next_or("sep", Value::string(", "));
  reader.done();
  return Value::object(runtime.make_object<Joiner>(separator));
}

// Its values in turn.
class Cycler : public Object {
 public:
  explicit Cycler(List& values) : values_(values) {}
  std::string describe(Runtime& /*runtime*/) const override { return "<Cycler>"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "current") return values_.items[next_];
    if (name != "next" && name != "reset") return std::nullopt;
    return Value::object(runtime.make_object<BoundBuiltin>(
        name, Value::object(*this), name == "next" ? &Cycler::next : &Cycler::reset));
  }

 private:
  static Value next(Runtime& runtime, Value self, const Arguments& arguments) {
    ArgumentReader(runtime, "next", arguments).done();
    auto& cycler = static_cast<Cycler&>(self.as_object());
    const Value value = cycler.values_.items[cycler.next_];
    cycler.next_ = (cycler.next_ + 1) % cycler.values_.items.size();
    return value;
  }
  static Value reset(Runtime& runtime, Value self, const Arguments& arguments) {
    ArgumentReader(runtime, "reset", arguments).done();
    static_cast<Cycler&>(self.as_object()).next_ = 0;
    return Value::none();
  }

  List& values_;
  size_t next_ = 0;
};

Value cycler(Runtime& runtime, Value /*self*/, const Arguments& arguments) {
  if (arguments.positional.empty()) runtime.fail("cycler: there is nothing to cycle through");
  List& values = runtime.make_list({arguments.positional.begin(), arguments.positional.end()});
  return Value::object(runtime.make_object<Cycler>(values));
}

class StrftimeNow : public Object {
 public:
  explicit StrftimeNow(std::chrono::local_seconds now) : now_(now) {}
  std::string describe(Runtime& /*runtime*/) const override { return "<function strftime_now>"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    ArgumentReader reader(runtime, "strftime_now", arguments);
    const std::string_view format = reader.next_text("format");
    reader.done();
    TextBuilder out(runtime);
    format_time(out, format, now_);
    return out.finish();
  }

 private:
  const std::chrono::local_seconds now_;
};

}  // namespace

void define_globals(Interpreter& interpreter, Runtime& runtime, const LocalTime& now) {
  const auto define = [&](std::string_view name, Builtin function) {
    interpreter.define(
        name, Value::object(runtime.make_object<BoundBuiltin>(name, Value::none(), function)));
  };
  define("range", range);
  define("dict", dict);
  define("namespace", make_namespace);
  define("joiner", joiner);
  define("cycler", cycler);
  define("raise_exception", raise_exception);
  if (now) {
    interpreter.define("strftime_now", Value::object(runtime.make_object<StrftimeNow>(*now)));
  }
}

}  // namespace sluice::text::jinja
