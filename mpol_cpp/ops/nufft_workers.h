#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/Parallel.h>

namespace mpol::ops {

/// Runs task(i, worker) for i of [0, count) on all threads, each taking the next `grain` that are left; worker is one of
/// at::get_num_threads(). What a task computes must not depend on who takes it.
template <typename Task>
void share_tasks(std::int64_t count, std::int64_t grain, const Task& task) {
  const std::int64_t workers = at::get_num_threads();
  std::atomic<std::int64_t> next{0};
  at::parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto worker = first; worker < last; ++worker) {
      for (auto begin = next.fetch_add(grain); begin < count; begin = next.fetch_add(grain)) {
        const auto end = begin + grain < count ? begin + grain : count;
        for (auto i = begin; i < end; ++i) task(i, worker);
      }
    }
  });
}

}  // namespace mpol::ops
