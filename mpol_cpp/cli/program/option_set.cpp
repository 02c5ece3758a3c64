#include <mpol_cpp/cli/program/option_set.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

std::string setting_name(const std::string& names) {
  const auto dashes = names.rfind("--");
  return dashes == std::string::npos ? names : names.substr(dashes + 2);
}

/// What to do about an option that has a meaning only under a condition.
std::string remedy_for(const std::string& option, const std::string& condition) {
  if (condition.starts_with("with --")) return fmt::format("add {} or leave {} out", condition.substr(5), option);
  return condition.starts_with("without --") ? "leave one of them out" : fmt::format("leave {} out", option);
}

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& limit) {
  throw UsageError(
      error_text("--" + option, text.empty() ? "(nothing)" : text, limit, fmt::format("give --{} such a value", option)));
}

/// Refuses a text of which not all was read as a number, or one that is too large. @param words  "number", "whole number"
void check_read(const std::string& option, const std::string& text, std::errc error, bool is_all, const char* words) {
  if (error == std::errc::result_out_of_range) refuse(option, text, fmt::format("is not a {} that can be represented", words));
  if (error == std::errc() && is_all) return;
  throw UsageError(error_text("--" + option, text.empty() ? "(nothing)" : text, fmt::format("is no {}", words),
                              fmt::format("give --{} one", option)));
}

constexpr const char* automatic = "auto";

/// A number as it is recorded; nothing where there is none.
template <typename Number>
auto getter_of(const std::optional<Number>& value) {
  return [&value] { return value ? std::optional(fmt::format("{}", *value)) : std::nullopt; };
}

}  // namespace

bool Range::contains(double value) const {
  return std::isfinite(value) && (low_allowed ? value >= low : value > low) && value <= high;
}

std::string Range::words() const {
  const bool bounded_below = std::isfinite(low), bounded_above = std::isfinite(high);
  if (bounded_below && bounded_above) return fmt::format("must lie between {} and {}", low, high);
  if (bounded_below) return fmt::format("must be finite and {} {}", low_allowed ? ">=" : ">", low);
  if (bounded_above) return fmt::format("must be finite and <= {}", high);
  return "must be a finite number";
}

double parse_number(const std::string& option, const std::string& text, const Range& range) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  check_read(option, text, error, stop == end, "number");
  if (!range.contains(value)) refuse(option, text, range.words());
  return value;
}

std::int64_t parse_integer(const std::string& option, const std::string& text, const Range& range) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  check_read(option, text, error, stop == end, "whole number");
  if (!range.contains(static_cast<double>(value))) refuse(option, text, range.words());
  return value;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : 4;
    if ((length == 4 && (lead < 0xf0 || lead > 0xf4)) || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool no_character = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
    if (overlong || no_character) return false;
    i += length;
  }
  return true;
}

std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

CLI::Option* OptionSet::add(const std::string& names, const std::function<void(const std::string&)>& set, const Getter& get,
                            const std::string& type, const std::string& help, Record record) {
  entries_.push_back({setting_name(names), get, record});
  const auto initial = get();
  auto* option = app_.add_option_function<std::string>(names, set, help)->type_name(type)->take_last();
  if (initial && *initial != "\"\"") {
    const bool quoted = initial->front() == '"';
    option->default_str(quoted ? initial->substr(1, initial->size() - 2) : *initial);
  }
  return option;
}

CLI::Option* OptionSet::number(const std::string& names, double& value, const Range& range, const std::string& unit,
                               const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add(
      names, set, [&value] { return std::optional(fmt::format("{}", value)); }, unit, help, record);
}

CLI::Option* OptionSet::number(const std::string& names, std::optional<double>& value, const Range& range,
                               const std::string& unit, const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add(names, set, getter_of(value), unit, help, record);
}

CLI::Option* OptionSet::integer(const std::string& names, std::int64_t& value, const Range& range, const std::string& help,
                                Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = parse_integer(name, text, range);
  };
  return add(
      names, set, [&value] { return std::optional(fmt::format("{}", value)); }, "N", help, record);
}

CLI::Option* OptionSet::integer(const std::string& names, std::optional<std::int64_t>& value, const Range& range,
                                const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = parse_integer(name, text, range);
  };
  return add(names, set, getter_of(value), "N", help, record);
}

CLI::Option* OptionSet::number_or_auto(const std::string& names, std::optional<double>& value, const Range& range,
                                       const std::string& unit, const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = text == automatic ? std::nullopt : std::optional(parse_number(name, text, range));
  };
  return add(names, set, getter_of(value), fmt::format("{}|{}", unit, automatic), help, record);
}

CLI::Option* OptionSet::integer_or_auto(const std::string& names, std::optional<std::int64_t>& value, const Range& range,
                                        const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value, range](const std::string& text) {
    value = text == automatic ? std::nullopt : std::optional(parse_integer(name, text, range));
  };
  return add(names, set, getter_of(value), fmt::format("N|{}", automatic), help, record);
}

CLI::Option* OptionSet::choice(const std::string& names, std::string& value, const std::vector<std::string>& choices,
                               const std::string& help, Record record) {
  const auto take = [&value, choices](std::size_t place) { value = choices[place]; };
  const auto get = [&value] { return value.empty() ? std::nullopt : std::optional(value); };
  return add_choice(names, choices, take, get, help, record);
}

CLI::Option* OptionSet::add_choice(const std::string& names, const std::vector<std::string>& words,
                                   const std::function<void(std::size_t)>& take, const Getter& get, const std::string& help,
                                   Record record) {
  const auto set = [name = setting_name(names), words, take](const std::string& text) {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) refuse(name, text, fmt::format("must be one of {}", fmt::join(words, ", ")));
    take(static_cast<std::size_t>(found - words.begin()));
  };
  const auto quoted = [get] {
    auto word = get();
    return word ? std::optional(toml_string(*word)) : std::nullopt;
  };
  return add(names, set, quoted, fmt::format("{}", fmt::join(words, "|")), help, record);
}

CLI::Option* OptionSet::text(const std::string& names, std::string& value, const std::string& type, const std::string& help,
                             Record record) {
  const auto get = [&value] { return value.empty() ? std::nullopt : std::optional(toml_string(value)); };
  return add(
      names, [&value](const std::string& given) { value = given; }, get, type, help, record);
}

CLI::Option* OptionSet::path(const std::string& names, std::filesystem::path& value, const std::string& help, Record record) {
  const auto set = [name = setting_name(names), &value](const std::string& given) {
    if (given.empty()) refuse(name, given, "must name a file or folder");
    value = given;
  };
  const auto get = [&value] { return value.empty() ? std::nullopt : std::optional(toml_string(value.string())); };
  return add(names, set, get, "PATH", help, record);
}

CLI::Option* OptionSet::flag(const std::string& names, bool& value, const std::string& help, Record record) {
  entries_.push_back(
      {setting_name(names), [&value] { return value ? std::optional<std::string>("true") : std::nullopt; }, record});
  return app_.add_flag(names, value, help)->take_last();
}

bool OptionSet::given(const std::string& name) const { return app_.get_option(name)->count() > 0; }

void OptionSet::only(const std::vector<std::string>& names, const std::string& condition, const std::function<bool()>& applies) {
  for (const auto& name : names) {
    app_.get_option(name);  // throws for a name that is not declared
    conditions_.push_back({name, condition, applies});
  }
}

void OptionSet::check_meaning() const {
  for (const auto& condition : conditions_) {
    if (!given(condition.option) || condition.applies()) continue;
    const auto* option = app_.get_option(condition.option);
    const bool is_flag = option->get_items_expected_max() == 0;
    throw UsageError(error_text(condition.option, is_flag ? "given" : option->results().back(),
                                fmt::format("has a meaning only {}", condition.words),
                                remedy_for(condition.option, condition.words)));
  }
}

std::vector<RecordedSetting> OptionSet::recorded() const {
  std::vector<RecordedSetting> settings;
  for (const auto& entry : entries_) {
    if (auto value = entry.get()) settings.push_back({entry.name, std::move(*value), entry.record});
  }
  return settings;
}

}  // namespace mpol::cli
