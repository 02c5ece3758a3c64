#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace mpol::testing {

/// Makes damaged files of good ones: flipped bits, extremes, integers and decimal numbers at their boundaries, slices cut
/// out, repeated, exchanged or taken from another file, and ends cut off. The same seed gives the same files.
class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::uint64_t seed);

  /// One to five such changes of one of the files.
  std::string next();

 private:
  std::uint64_t below(std::uint64_t bound);
  template <typename List>
  const auto& one_of(const List& list);
  struct Slice {
    std::size_t begin = 0, count = 0;
  };
  Slice slice_of(const std::string& bytes);
  void change(std::string& bytes);

  void flip_bit(std::string& bytes);
  void set_extreme(std::string& bytes);
  void set_integer(std::string& bytes);
  void set_decimal(std::string& bytes);
  void cut_end(std::string& bytes);
  void cut_slice(std::string& bytes);
  void repeat_slice(std::string& bytes);
  void take_slice(std::string& bytes);
  void exchange_slices(std::string& bytes);

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace mpol::testing
