#pragma once

#include <functional>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/recorded_work.h>

namespace mpol::testing {

/// While it lives, recordings on the CPU go as on a GPU that refuses them.
class RefusedRecordings {
 public:
  explicit RefusedRecordings(const std::string& reason) {
    detail::rehearse_recordings([this, reason] {
      ++count_;
      throw DeviceError(reason);
    });
  }
  ~RefusedRecordings() { detail::rehearse_recordings({}); }
  RefusedRecordings(const RefusedRecordings&) = delete;
  RefusedRecordings& operator=(const RefusedRecordings&) = delete;

  int count() const { return count_; }

 private:
  int count_ = 0;
};

}  // namespace mpol::testing
