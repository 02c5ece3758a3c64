#pragma once

// The one place that includes fmt: LibTorch carries a version of its own that shadows the system's (core/fmt_library.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>
