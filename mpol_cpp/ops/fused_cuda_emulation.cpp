#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <mpol_cpp/ops/fused_cuda_launch.h>

namespace mpol::ops {
namespace {

template <typename Body>
class EmulatedBlock {
 public:
  explicit EmulatedBlock(EmulatedOrder order) : order_(order), shared_(std::make_unique<Shared>()), locals_(Body::threads) {}

  void run(const Body& body, std::int64_t block) {
    std::memset(static_cast<void*>(shared_.get()), 0xff, sizeof(Shared));
    run_phases(body, block, std::make_integer_sequence<int, Body::phases>());
  }

 private:
  using Shared = typename Body::Shared;

  template <int... phases>
  void run_phases(const Body& body, std::int64_t block, std::integer_sequence<int, phases...>) {
    (run_phase<phases>(body, block), ...);
  }

  template <int phase>
  void run_phase(const Body& body, std::int64_t block) {
    for (int i = 0; i < Body::threads; ++i) {
      const int thread = order_ == EmulatedOrder::ascending ? i : Body::threads - 1 - i;
      body.template run<phase>({block, thread}, *shared_, locals_[static_cast<std::size_t>(thread)]);
    }
  }

  EmulatedOrder order_;
  std::unique_ptr<Shared> shared_;
  std::vector<typename Body::Local> locals_;
};

}  // namespace

template <typename T>
void emulate(DeviceKernel kernel, TileKind tile, const DeviceArrays<T>& arrays, EmulatedOrder order) {
  const auto run = [order](const auto& body) {
    EmulatedBlock<std::decay_t<decltype(body)>> emulated(order);
    const auto blocks = body.blocks();
    for (std::int64_t i = 0; i < blocks; ++i) emulated.run(body, order == EmulatedOrder::ascending ? i : blocks - 1 - i);
  };
  switch (tile) {
    case TileKind::low:
      return with_body<LowTile>(kernel, arrays, run);
    case TileKind::high:
      return with_body<HighTile>(kernel, arrays, run);
    case TileKind::odd:
      return with_body<OddTile>(kernel, arrays, run);
  }
}

template void emulate(DeviceKernel, TileKind, const DeviceArrays<float>&, EmulatedOrder);
template void emulate(DeviceKernel, TileKind, const DeviceArrays<double>&, EmulatedOrder);

}  // namespace mpol::ops
