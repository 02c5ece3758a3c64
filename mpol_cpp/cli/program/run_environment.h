#pragma once

#include <map>
#include <string>

namespace mpol::cli {

/// Versions of mpol_cpp and of what its results depend on.
std::map<std::string, std::string> versions();

/// Seconds since this process was started, program loading included.
double seconds_since_start();

/// The most memory that this process has held so far, bytes: its resident pages, those of libraries among them.
double peak_memory();

}  // namespace mpol::cli
