#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/distributed/communicator.h>

/// What every communicator must do, asked by all its ranks together; uneven rows, empty ones and every dtype.
/// @return what it did not, in words; empty: all is well
std::vector<std::string> failures_of(mpol::Communicator& ranks);
