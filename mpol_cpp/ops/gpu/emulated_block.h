#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// The order in which the emulation goes through blocks, and through the threads of each: what comes out does not depend
/// on it unless a barrier is missing.
enum class EmulatedOrder { ascending, descending };

/// A block of threads on the CPU. Shared and scratch memory begin as NaN.
template <typename Body>
class EmulatedBlock {
 public:
  explicit EmulatedBlock(EmulatedOrder order) : order_(order), shared_(std::make_unique<Shared>()), locals_(Body::threads) {}

  void run(const Body& body, std::int64_t block) {
    std::memset(static_cast<void*>(shared_.get()), 0xff, sizeof(Shared));
    scratch_.assign(static_cast<std::size_t>(BodyScratch<Body>::bytes(body) + sizeof(ScratchUnit) - 1) / sizeof(ScratchUnit),
                    nan_);
    run_phases<0, Rounds::begin>(body, block, 0);
    const auto rounds = Rounds::count(body, block);
    for (std::int64_t round = 0; round < rounds; ++round) run_phases<Rounds::begin, Rounds::end>(body, block, round);
    run_phases<Rounds::end, Body::phases>(body, block, 0);
  }

 private:
  using Shared = typename Body::Shared;
  struct alignas(16) ScratchUnit {
    double values[2];
  };
  using Rounds = BodyRounds<Body>;

  template <int phase, int end>
  void run_phases(const Body& body, std::int64_t block, std::int64_t round) {
    if constexpr (phase < end) {
      for (int i = 0; i < Body::threads; ++i) {
        const int thread = order_ == EmulatedOrder::ascending ? i : Body::threads - 1 - i;
        const Place place{block, thread, round, reinterpret_cast<unsigned char*>(scratch_.data()),
                          BodyScratch<Body>::bytes(body)};
        body.template run<phase>(place, *shared_, locals_[static_cast<std::size_t>(thread)]);
      }
      run_phases<phase + 1, end>(body, block, round);
    }
  }

  EmulatedOrder order_;
  std::unique_ptr<Shared> shared_;
  std::vector<typename Body::Local> locals_;
  std::vector<ScratchUnit> scratch_;
  ScratchUnit nan_{{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()}};
};

/// All blocks of a kernel. @throws std::out_of_range for an element outside an array
template <typename Body>
void emulate_body(const Body& body, EmulatedOrder order) {
  EmulatedBlock<Body> emulated(order);
  const auto blocks = body.blocks();
  for (std::int64_t i = 0; i < blocks; ++i) emulated.run(body, order == EmulatedOrder::ascending ? i : blocks - 1 - i);
}

/// All stages of a kernel, and in a descending order the bodies of each the other way round, too.
/// @throws std::out_of_range likewise
template <typename Stages>
void emulate_stages(const Stages& stages, EmulatedOrder order) {
  for (int stage = 0; stage < stages.stages(); ++stage) {
    std::vector<std::function<void()>> bodies;
    stages.with_bodies(stage, [&](const auto& body) { bodies.emplace_back([body, order] { emulate_body(body, order); }); });
    if (order == EmulatedOrder::descending) std::reverse(bodies.begin(), bodies.end());
    for (const auto& run : bodies) run();
  }
}

/// A kernel of a family (ops/gpu/run_kernel.h), at once, on the CPU. @throws std::out_of_range likewise
template <typename Kernel, typename Arrays>
void emulate(Kernel kernel, const Arrays& arrays, EmulatedOrder order) {
  with_body(kernel, arrays, [order](const auto& body) { emulate_body(body, order); });
}

/// Stages of a family, likewise.
template <typename Kernel, typename Arrays>
void emulate_all_stages(Kernel kernel, const Arrays& arrays, EmulatedOrder order) {
  with_stages(kernel, arrays, [order](const auto& stages) { emulate_stages(stages, order); });
}

}  // namespace mpol::ops
