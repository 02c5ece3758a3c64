#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Config.hpp>

#include <mpol_cpp/cli/program/choices.h>

namespace mpol::cli {

/// What a setting means for a run that is repeated or resumed.
enum class Record {
  result,  ///< alters the result: in run.toml, and the same or refused when resuming
  manner,  ///< alters how the run goes, not what it gives: in run.toml, free to change when resuming
  none,    ///< belongs to one call of the program only
};

/// Where a number may lie; NaN and infinities lie nowhere.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  bool low_allowed = true;
  double high = std::numeric_limits<double>::infinity();

  static Range any() { return {}; }
  static Range positive() { return {.low = 0.0, .low_allowed = false}; }
  static Range not_negative() { return {.low = 0.0}; }
  static Range between(double low, double high) { return {.low = low, .low_allowed = true, .high = high}; }

  bool contains(double value) const;
  std::string words() const;  ///< "must be a finite number > 0"
};

/// One setting as run.toml holds it.
struct RecordedSetting {
  std::string name;        ///< long option name, without dashes
  std::string toml_value;  ///< "0.3", "\"adam\"", "true"
  Record record;
};

/// The options of a verb: each is parsed, checked against its range with one clear line, and recorded from one
/// declaration. The last value given wins.
class OptionSet {
 public:
  explicit OptionSet(CLI::App& app) : app_(app) {}

  /// @param names  as CLI11 takes them, "-o,--out"; the last long one names the setting
  CLI::Option* number(const std::string& names, double& value, const Range& range, const std::string& unit,
                      const std::string& help, Record record);
  CLI::Option* number(const std::string& names, std::optional<double>& value, const Range& range, const std::string& unit,
                      const std::string& help, Record record);
  CLI::Option* integer(const std::string& names, std::int64_t& value, const Range& range, const std::string& help, Record record);
  CLI::Option* integer(const std::string& names, std::optional<std::int64_t>& value, const Range& range, const std::string& help,
                       Record record);
  /// The same where "auto", the default, leaves it to the verb.
  CLI::Option* number_or_auto(const std::string& names, std::optional<double>& value, const Range& range, const std::string& unit,
                              const std::string& help, Record record);
  CLI::Option* integer_or_auto(const std::string& names, std::optional<std::int64_t>& value, const Range& range,
                               const std::string& help, Record record);
  CLI::Option* choice(const std::string& names, std::string& value, const std::vector<std::string>& choices,
                      const std::string& help, Record record);
  /// A value by its word. @param choices  of the option, which must outlive this
  template <ChoiceValue Value>
  CLI::Option* choice(const std::string& names, Value& value, Choices<std::type_identity_t<Value>> choices,
                      const std::string& help, Record record) {
    const auto take = [&value, choices](std::size_t place) { value = choices[place].value; };
    const auto get = [&value, choices] { return std::optional(choice_name(value, choices)); };
    return add_choice(names, words_of<Value>(choices), take, get, help, record);
  }
  /// The same of an option without a default, which is recorded where it is given.
  template <ChoiceValue Value>
  CLI::Option* choice(const std::string& names, std::optional<Value>& value, Choices<std::type_identity_t<Value>> choices,
                      const std::string& help, Record record) {
    const auto take = [&value, choices](std::size_t place) { value = choices[place].value; };
    const auto get = [&value, choices] { return value ? std::optional(choice_name(*value, choices)) : std::nullopt; };
    return add_choice(names, words_of<Value>(choices), take, get, help, record);
  }
  CLI::Option* text(const std::string& names, std::string& value, const std::string& type, const std::string& help,
                    Record record);
  CLI::Option* path(const std::string& names, std::filesystem::path& value, const std::string& help, Record record);
  CLI::Option* flag(const std::string& names, bool& value, const std::string& help, Record record);
  /// A setting of another form. @param get  its value in TOML; nothing while it has none
  CLI::Option* parsed(const std::string& names, const std::function<void(const std::string&)>& set,
                      const std::function<std::optional<std::string>()>& get, const std::string& type, const std::string& help,
                      Record record) {
    return add(names, set, get, type, help, record);
  }

  /// Replaces what the help says of an option. @param name  the long one, with its dashes
  void describe(const std::string& name, const std::string& help) { app_.get_option(name)->description(help); }

  /// Whether the command line or its configuration file sets the option (a file: to something else than its default).
  /// @param name  the long one, with its dashes
  bool given(const std::string& name) const;

  /// States that options have a meaning only where `applies` says so once all are parsed.
  /// @param names      long ones, with their dashes
  /// @param condition  the same in words, as in "with --weighting briggs" or "without --array"
  void only(const std::vector<std::string>& names, const std::string& condition, const std::function<bool()>& applies);

  /// Refuses options that were given where they have none: what is accepted has an effect.
  /// @throws UsageError naming the option, its value and the condition
  void check_meaning() const;

  /// All settings that have a value, in the order of declaration, as they are now.
  std::vector<RecordedSetting> recorded() const;

  CLI::App& app() const { return app_; }
  std::string verb() const { return app_.get_name(); }  ///< whose options these are

 private:
  using Getter = std::function<std::optional<std::string>()>;
  template <typename Value>
  static std::vector<std::string> words_of(Choices<Value> choices) {
    std::vector<std::string> words;
    words.reserve(choices.size());
    for (const auto& choice : choices) words.emplace_back(choice.name);
    return words;
  }
  /// @param take  what to do with the place of the word that is given  @param get  the word of the value as it is, if it has one
  CLI::Option* add_choice(const std::string& names, const std::vector<std::string>& words,
                          const std::function<void(std::size_t)>& take, const Getter& get, const std::string& help,
                          Record record);
  CLI::Option* add(const std::string& names, const std::function<void(const std::string&)>& set, const Getter& get,
                   const std::string& type, const std::string& help, Record record);

  struct Entry {
    std::string name;
    Getter get;
    Record record;
  };
  struct Condition {
    std::string option, words;
    std::function<bool()> applies;
  };
  CLI::App& app_;
  std::vector<Entry> entries_;
  std::vector<Condition> conditions_;
};

/// A whole text as a number. @throws UsageError naming the option, the value, the limit
double parse_number(const std::string& option, const std::string& text, const Range& range);
std::int64_t parse_integer(const std::string& option, const std::string& text, const Range& range);

/// True when a text is UTF-8 from beginning to end, as TOML demands.
bool is_utf8(std::string_view text);

/// A TOML basic string, quotes and escapes included.
std::string toml_string(const std::string& text);

}  // namespace mpol::cli
