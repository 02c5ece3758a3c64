#include <mpol_cpp/device/recorded_work.h>

#include <string>
#include <utility>

#ifdef MPOL_WITH_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/streams.h>

namespace mpol {
namespace {

std::function<void()>& rehearsal() {
  static std::function<void()> rehearsed;
  return rehearsed;
}

}  // namespace

namespace detail {
void rehearse_recordings(std::function<void()> instead) { rehearsal() = std::move(instead); }
}  // namespace detail

#ifdef MPOL_WITH_CUDA
namespace {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // told here, to nobody else
  throw DeviceError(fmt::format("the step cannot be {} a CUDA graph: {}; use the eager step", what, cudaGetErrorString(status)));
}

}  // namespace

/// Not at::cuda::CUDAGraph: in LibTorch 2.11 a recording that fails leaves its allocator and its generator of random numbers
/// recording for the rest of the process.
class RecordedWork::Graph {
  /// What a recording allocates, which its replays use again: given back with the graph.
  class PrivatePool {
   public:
    explicit PrivatePool(torch::Device device) : device_(device.index()), id_(at::cuda::graph_pool_handle()) {}
    ~PrivatePool() {
      end();
      if (begun_) c10::cuda::CUDACachingAllocator::releasePool(device_, id_);
    }
    PrivatePool(const PrivatePool&) = delete;
    PrivatePool& operator=(const PrivatePool&) = delete;

    void begin(cudaStream_t stream) {
      c10::cuda::CUDACachingAllocator::beginAllocateToPool(device_, id_,
                                                           [stream](cudaStream_t other) { return other == stream; });
      begun_ = open_ = true;
    }
    void end() {
      if (std::exchange(open_, false)) c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, id_);
    }

   private:
    c10::DeviceIndex device_;
    c10::MempoolId_t id_;
    bool begun_ = false, open_ = false;
  };

  struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
  };
  struct DestroyExecutable {
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };

 public:
  Graph(torch::Device device, const std::function<void()>& prepare, const std::function<void()>& work, int warm_ups)
      : device_(device), pool_(device) {
    const c10::cuda::CUDAGuard device_guard(device_);
    const auto outer = c10::cuda::getCurrentCUDAStream(device_.index());
    const auto own = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_.index());
    follow(own, outer);
    try {
      const c10::cuda::CUDAStreamGuard stream_guard(own);
      if (prepare) prepare();
      for (int i = 0; i < warm_ups; ++i) work();
      own.synchronize();
      record(work, own);
    } catch (...) {
      follow(outer, own);
      throw;
    }
    follow(outer, own);
  }

  /// Waits for the device: replays may still be under way.
  ~Graph() {
    const c10::cuda::CUDAGuard device_guard(device_);
    static_cast<void>(cudaDeviceSynchronize());
    executable_.reset();
    graph_.reset();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() {
    const c10::cuda::CUDAGuard device_guard(device_);
    check_cuda(cudaGraphLaunch(executable_.get(), c10::cuda::getCurrentCUDAStream(device_.index()).stream()), "replayed from");
  }

  std::int64_t launches() {
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph_.get(), nullptr, &nodes), "counted in");
    return static_cast<std::int64_t>(nodes);
  }

 private:
  /// What comes in the one stream waits for what is in the other.
  static void follow(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  }

  /// Whatever happens, both the recording and the allocations to its pool come to their end.
  void record(const std::function<void()>& work, const c10::cuda::CUDAStream& stream) {
    pool_.begin(stream.stream());
    // Other threads may go on with what a recording must not do.
    check_cuda(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal), "recorded as");
    std::string failure;
    try {
      work();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    cudaGraph_t graph = nullptr;
    const auto status = cudaStreamEndCapture(stream.stream(), &graph);
    graph_.reset(graph);
    pool_.end();
    if (!failure.empty()) {
      static_cast<void>(cudaGetLastError());  // of the recording that broke off
      throw DeviceError(fmt::format("the step cannot be recorded as a CUDA graph: {}; use the eager step", failure));
    }
    check_cuda(status, "recorded as");
    cudaGraphExec_t executable = nullptr;
    check_cuda(cudaGraphInstantiate(&executable, graph, 0), "made ready from");
    executable_.reset(executable);
  }

  torch::Device device_;
  PrivatePool pool_;
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph_;  // kept for launches()
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyExecutable> executable_;
};

#else

class RecordedWork::Graph {
 public:
  Graph(torch::Device device, const std::function<void()>&, const std::function<void()>&, int) {
    throw DeviceError(
        fmt::format("this build of mpol_cpp records nothing on {}: configure one with -DMPOL_CUDA=ON", device.str()));
  }
  void replay() {}
  std::int64_t launches() { return 0; }
};

#endif

RecordedWork::RecordedWork(torch::Device device, std::function<void()> work, int warm_ups, const std::function<void()>& prepare)
    : work_(std::move(work)) {
  if (detail::has_streams(device)) {
    graph_ = std::make_unique<Graph>(device, prepare, work_, warm_ups);
    return;
  }
  if (prepare) prepare();
  if (!rehearsal()) return;
  for (int i = 0; i < warm_ups; ++i) work_();
  rehearsal()();
}

RecordedWork::~RecordedWork() = default;

void RecordedWork::replay() {
  if (graph_) graph_->replay();
  else work_();
}

std::int64_t RecordedWork::launches() const { return graph_ ? graph_->launches() : 0; }

}  // namespace mpol
