#pragma once

#include <cstdint>
#include <string>

namespace benchmarks {

/// Reads what mpol needs of a set by getColumnRange alone, in blocks of as many values, and returns their number.
std::int64_t read_columns(const std::string& set);

/// Writes a set of one window of 64 channels and two hands in tiles, with WEIGHT, and a flag in a hundred samples.
void make_set(const std::string& path, std::int64_t rows);

}  // namespace benchmarks
