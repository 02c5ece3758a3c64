#include <mpol_cpp/device/device_iterator.h>

#include <c10/core/StreamGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/streams.h>

namespace mpol::detail {
namespace {

[[noreturn]] void refuse_batch(const std::string& path, const char* what) {
  throw DeviceError(
      fmt::format("{} is {}, which is no part of a batch: move it to the device once, before the loop", path, what));
}

/// Takes tensors to a device without touching those of the loader.
class Stager : public LeafVisitor {
 public:
  Stager(torch::Device device, std::optional<c10::Stream> side) : device_(device), side_(side) {}

  void tensor(Tensor& tensor, const std::string&) override {
    if (!tensor.defined()) return;
    if (!side_) {
      tensor = tensor.to(device_);
      return;
    }
    const c10::StreamGuard guard(*side_);
    if (tensor.is_cpu() && device_.is_cuda()) tensor = tensor.contiguous().pin_memory();
    tensor = tensor.to(device_, /*non_blocking=*/true);
  }
  void module(torch::nn::Module&, const std::string& path) override { refuse_batch(path, "a module"); }
  void optimizer(torch::optim::Optimizer&, const std::string& path) override { refuse_batch(path, "an optimiser"); }

 private:
  torch::Device device_;
  std::optional<c10::Stream> side_;
};

/// Tells the allocator that a stream uses tensors that another one made.
class StreamRecorder : public LeafVisitor {
 public:
  explicit StreamRecorder(c10::Stream stream) : stream_(stream) {}
  void tensor(Tensor& tensor, const std::string&) override {
    if (tensor.defined()) tensor.record_stream(stream_);
  }
  void module(torch::nn::Module&, const std::string&) override {}
  void optimizer(torch::optim::Optimizer&, const std::string&) override {}

 private:
  c10::Stream stream_;
};

}  // namespace

BatchStager::BatchStager(torch::Device device) : device_(device) {
  if (has_streams(device)) side_ = side_stream(device);
}

std::unique_ptr<LeafVisitor> BatchStager::make_stager() const { return std::make_unique<Stager>(device_, side_); }
std::unique_ptr<LeafVisitor> BatchStager::make_recorder() const { return std::make_unique<StreamRecorder>(current()); }
c10::Stream BatchStager::current() const { return current_stream(device_); }

std::optional<c10::Event> BatchStager::put_aside(const std::function<void()>& work) const {
  if (!side_) {
    work();
    return std::nullopt;
  }
  const c10::StreamGuard guard(*side_);
  work();
  return record_event(device_, EventTiming::off);
}

std::optional<c10::Event> BatchStager::staged_event() const {
  if (!side_) return std::nullopt;
  const c10::StreamGuard guard(*side_);
  return record_event(device_, EventTiming::off);
}

}  // namespace mpol::detail
