#include <mpol_cpp/train/steps/recording/recorded_places.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {

void RecordedPlaces::add(const std::string& prefix, const torch::nn::Module& module) {
  const auto add_all = [&](const auto& named) {
    for (const auto& item : named) {
      const auto& tensor = item.value();
      if (tensor.defined()) places_.push_back({prefix + item.key(), tensor, tensor.const_data_ptr(), tensor.scalar_type()});
    }
  };
  add_all(module.named_parameters());
  add_all(module.named_buffers());
}

void RecordedPlaces::check() const {
  for (const auto& [name, tensor, data, dtype] : places_) {
    if (tensor.const_data_ptr() == data && tensor.scalar_type() == dtype) continue;
    throw ValueError(fmt::format("{} was moved or cast after its step was recorded: make a new one", name));
  }
}

}  // namespace mpol::detail
