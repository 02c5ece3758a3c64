#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <mpol_cpp/core/error.h>

namespace mpol::cli {

/// One of the choices of an option: a word of the command line, and what it means.
template <typename Value>
struct NamedChoice {
  const char* name;
  Value value;
};

/// All choices of an option, in the order of its help; they must outlive this view of them.
template <typename Value>
using Choices = std::span<const NamedChoice<Value>>;

/// What a word may mean: a value of an enumeration, or of one with nothing beside, such as what "auto" leaves open.
template <typename Value>
concept ChoiceValue = std::is_enum_v<Value> || requires {
  requires std::is_enum_v<typename Value::value_type>;
  requires std::is_same_v<Value, std::optional<typename Value::value_type>>;
};

/// The word of a value. @param choices  a range of NamedChoice  @throws ValueError for a value that is none of them
template <typename Value, typename Range>
std::string choice_name(const Value& value, const Range& choices) {
  const auto found =
      std::find_if(std::begin(choices), std::end(choices), [&](const auto& choice) { return choice.value == value; });
  if (found == std::end(choices)) throw ValueError("a value is none of the choices of its option");
  return found->name;
}

}  // namespace mpol::cli
