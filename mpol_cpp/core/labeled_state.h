#pragma once

#include <map>
#include <string>

namespace mpol {

/// What the tensors of a module belong to besides their shapes, a grid or baselines, by name and in words. Labels are written
/// beside the tensors where these are saved, and compared where they are loaded, so that a state of another grid is refused.
class LabeledState {
 public:
  virtual ~LabeledState() = default;
  virtual std::map<std::string, std::string> state_labels() const = 0;  ///< name and text of each label
};

}  // namespace mpol
