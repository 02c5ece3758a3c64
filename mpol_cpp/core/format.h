#pragma once

// The one place that includes fmt, header-only everywhere: LibTorch carries a version of its own that shadows the system's.
#include <fmt/format.h>
#include <fmt/ranges.h>
