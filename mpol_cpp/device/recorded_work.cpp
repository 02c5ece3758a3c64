#include <mpol_cpp/device/recorded_work.h>

#include <utility>

#ifdef MPOL_WITH_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/streams.h>

namespace mpol {

#ifdef MPOL_WITH_CUDA

class RecordedWork::Graph {
 public:
  Graph(torch::Device device, const std::function<void()>& work, int warm_ups) : device_(device) {
    const c10::cuda::CUDAGuard device_guard(device_);
    const auto outer = c10::cuda::getCurrentCUDAStream(device_.index());
    const auto own = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index());
    follow(own, outer);
    {
      const c10::cuda::CUDAStreamGuard stream_guard(own);
      for (int i = 0; i < warm_ups; ++i) work();
      own.synchronize();
      record(work);
    }
    follow(outer, own);
  }

  void replay() {
    const c10::cuda::CUDAGuard device_guard(device_);
    graph_.replay();
  }

  std::int64_t launches() {
    std::size_t nodes = 0;
    if (cudaGraphGetNodes(graph_.raw_cuda_graph(), nullptr, &nodes) != cudaSuccess) return 0;
    return static_cast<std::int64_t>(nodes);
  }

 private:
  /// What comes in the one stream waits for what is in the other.
  static void follow(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  }

  void record(const std::function<void()>& work) {
    graph_.capture_begin();
    try {
      work();
    } catch (const std::exception& error) {
      try {
        graph_.capture_end();
      } catch (const std::exception&) {  // says only that the recording broke off
      }
      throw DeviceError(fmt::format("the step cannot be recorded as a CUDA graph: {}; use the eager step", error.what()));
    }
    graph_.capture_end();
    graph_.instantiate();
  }

  torch::Device device_;
  at::cuda::CUDAGraph graph_{/*keep_graph=*/true};  // for launches()
};

#else

class RecordedWork::Graph {
 public:
  Graph(torch::Device device, const std::function<void()>&, int) {
    throw DeviceError(
        fmt::format("this build of mpol_cpp records nothing on {}: configure one with -DMPOL_CUDA=ON", device.str()));
  }
  void replay() {}
  std::int64_t launches() { return 0; }
};

#endif

RecordedWork::RecordedWork(torch::Device device, std::function<void()> work, int warm_ups) : work_(std::move(work)) {
  if (detail::has_streams(device)) graph_ = std::make_unique<Graph>(device, work_, warm_ups);
}

RecordedWork::~RecordedWork() = default;

void RecordedWork::replay() {
  if (graph_) graph_->replay();
  else work_();
}

std::int64_t RecordedWork::launches() const { return graph_ ? graph_->launches() : 0; }

}  // namespace mpol
