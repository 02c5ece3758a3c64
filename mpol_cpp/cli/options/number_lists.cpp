#include <mpol_cpp/cli/options/number_lists.h>

#include <sstream>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/option_set.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr double widest_offset = 36000;  // arcsec: beyond it nothing is as on a plane

}  // namespace

std::vector<std::string> list_items(const std::string& list, char separator) {
  std::vector<std::string> items;
  std::istringstream text(list);
  for (std::string item; std::getline(text, item, separator);) items.push_back(item);
  return items;
}

std::vector<std::int64_t> parse_number_list(const std::string& option, const std::string& list) {
  constexpr std::int64_t most = 1 << 24;
  std::vector<std::int64_t> numbers;
  const auto refuse = [&](const std::string& item) {
    throw UsageError(
        error_text(option, item.empty() ? list : item, "must be numbers and ranges from 0 on, as in 0,3-7", "correct it"));
  };
  if (!list.empty() && list.back() == ',') refuse(list);
  for (const auto& item : list_items(list, ',')) {
    const auto dash = item.find('-');
    const auto numeral = [&](const std::string& text) {
      if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) refuse(item);
      return parse_integer(option.substr(2), text, Range::between(0, most));
    };
    const auto first = numeral(item.substr(0, dash));
    const auto last = dash == std::string::npos ? first : numeral(item.substr(dash + 1));
    if (last < first) refuse(item);
    for (auto number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

SkyOffset parse_offset(const std::string& option, const std::string& text) {
  const auto items = list_items(text, ',');
  if (items.size() != 2 || text.back() == ',')
    throw UsageError(error_text(option, text, "must be two numbers, EAST,NORTH in arcsec", "write it as in 12,-0.5"));
  const auto name = option.substr(2);
  return {parse_number(name, items[0], Range::between(-widest_offset, widest_offset)),
          parse_number(name, items[1], Range::between(-widest_offset, widest_offset))};
}

std::string offset_value(const SkyOffset& offset) { return fmt::format("{:.9g},{:.9g}", offset.east, offset.north); }

}  // namespace mpol::cli
