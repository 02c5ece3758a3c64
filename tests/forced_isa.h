#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace mpol::testing {

/// Sets MPOL_ISA while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(std::string_view name) {
    if (const char* before = std::getenv("MPOL_ISA")) before_ = before;
    setenv("MPOL_ISA", std::string(name).c_str(), 1);
  }
  ~ForcedIsa() {
    if (before_) setenv("MPOL_ISA", before_->c_str(), 1);
    else unsetenv("MPOL_ISA");
  }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace mpol::testing
