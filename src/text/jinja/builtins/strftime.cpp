// See strftime.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/strftime.h"

#include <array>
#include <string>

namespace sluice::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

struct CivilTime {
  int year, month, day, day_of_year, day_of_week;  // Sunday is 0
  int hour, minute, second;
};

CivilTime civil(std::chrono::local_seconds time) {
  using namespace std::chrono;
  const local_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  const local_days new_year = local_days(date.year() / January / 1);
  return {static_cast<int>(date.year()),
          static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())),
          static_cast<int>((day - new_year).count()) + 1,
          static_cast<int>(weekday(day).c_encoding()),
          static_cast<int>(clock.hours().count()),
          static_cast<int>(clock.minutes().count()),
          static_cast<int>(clock.seconds().count())};
}

std::string padded(int value, size_t width, char fill) {
  std::string digits = std::to_string(value);
  if (fill != '\0' && digits.size() < width) digits.insert(0, width - digits.size(), fill);
  return digits;
}

// The text of a directive; empty where there is none of that letter. fill: '0', or 0 for %-d.
std::string directive(const CivilTime& t, char letter, char fill) {
  const int hour12 = (t.hour + 11) % 12 + 1;
  switch (letter) {
    case 'Y':
      return padded(t.year, 4, fill);
    case 'y':
      return padded((t.year % 100 + 100) % 100, 2, fill);
    case 'm':
      return padded(t.month, 2, fill);
    case 'd':
      return padded(t.day, 2, fill);
    case 'e':
      return padded(t.day, 2, ' ');
    case 'H':
      return padded(t.hour, 2, fill);
    case 'I':
      return padded(hour12, 2, fill);
    case 'M':
      return padded(t.minute, 2, fill);
    case 'S':
      return padded(t.second, 2, fill);
    case 'j':
      return padded(t.day_of_year, 3, fill);
    case 'p':
      return t.hour < 12 ? "AM" : "PM";
    case 'A':
      return std::string(kDays[static_cast<size_t>(t.day_of_week)]);
    case 'a':
      return std::string(kDays[static_cast<size_t>(t.day_of_week)].substr(0, 3));
    case 'B':
      return std::string(kMonths[static_cast<size_t>(t.month) - 1]);
    case 'b':
      return std::string(kMonths[static_cast<size_t>(t.month) - 1].substr(0, 3));
    case 'w':
      return std::to_string(t.day_of_week);
    case 'F':
      return padded(t.year, 4, '0') + "-" + padded(t.month, 2, '0') + "-" + padded(t.day, 2, '0');
    case 'D':
      return directive(t, 'm', '0') + "/" + directive(t, 'd', '0') + "/" + directive(t, 'y', '0');
    case 'T':
      return padded(t.hour, 2, '0') + ":" + padded(t.minute, 2, '0') + ":" +
             padded(t.second, 2, '0');
    case '%':
      return "%";
    default:
      return {};
  }
}

}  // namespace

void format_time(TextBuilder& out, std::string_view format, std::chrono::local_seconds time) {
  const CivilTime now = civil(time);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.add(format[i]);
      continue;
    }
    const bool bare = i + 1 < format.size() && format[i + 1] == '-';
    i += bare ? 2 : 1;
    const std::string text =
        i < format.size() ? directive(now, format[i], bare ? '\0' : '0') : std::string();
    if (text.empty()) {
      out.runtime().fail(cat("strftime_now: a directive of ", quoted(format), " is not supported"));
    }
    out.add(text);
  }
}

}  // namespace sluice::text::jinja
