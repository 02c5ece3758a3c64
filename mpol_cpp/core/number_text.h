#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace mpol {

/// Takes the number at the beginning of a text, after blanks, and leaves what follows it.
///
/// Whatever locale the process has set: under one with a decimal comma, std::stod and streams read "1.2e-3" as 1.
/// @param text  shortened by what was read; as it was when nothing was
/// @return      nothing when no number that can be represented stands there
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  auto rest = text.substr(begin);
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return std::nullopt;
  text = rest.substr(static_cast<std::size_t>(end - rest.data()));
  return number;
}

/// The number that a text is, blanks about it aside; nothing when there is more, or less. Independent of the locale.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  const auto number = take_number<Number>(text);
  if (!number || text.find_first_not_of(" \t\r\n") != std::string_view::npos) return std::nullopt;
  return number;
}

}  // namespace mpol
