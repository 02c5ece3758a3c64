#pragma once

#include <cstdint>
#include <string>

namespace benchmarks {

/// How many rows a call of getColumnRange takes: of a block as large as mpol's, into arrays that are there, or all, which are
/// kept.
enum class Rows { block, all };

/// Reads what mpol needs of a set by getColumnRange alone, and returns the number of values.
std::int64_t read_columns(const std::string& set, Rows at_once);

/// Writes a set of one window of 64 channels and two hands in tiles, with WEIGHT, and a flag in a hundred samples.
void make_set(const std::string& path, std::int64_t rows);

}  // namespace benchmarks
