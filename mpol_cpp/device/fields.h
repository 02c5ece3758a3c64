#pragma once

#include <string_view>

namespace mpol {

// A struct of one's own moves (device/move.h) like everything else once it declares its fields, beside it or as a friend:
//
//   struct State { Tensor image; std::vector<Tensor> moments; };
//   auto device_fields(State& s) { return std::tuple(field("image", s.image), field("moments", s.moments)); }
//
// std::tie(s.image, s.moments) does as well; the fields are then called .0, .1, … in messages.

/// A field of a struct and its name in messages.
template <typename T>
struct Field {
  std::string_view name;  ///< as messages call it
  T& value;               ///< the field itself, which moves
};
/// Names a field, for device_fields() of one's own struct.
template <typename T>
Field<T> field(std::string_view name, T& value) {
  return {name, value};
}

}  // namespace mpol
