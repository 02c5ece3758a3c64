#pragma once

#include <cstdint>

#include <ATen/Parallel.h>

#include <mpol_cpp/core/worker_pool.h>

namespace mpol::ops {

/// Threads that share work asked for here: one within a parallel region of LibTorch.
inline std::int64_t sharing_threads() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

/// Runs task(i, worker) for i of [0, count) on all threads, each taking the next `grain` that are left; worker is one of
/// at::get_num_threads(). What a task computes must not depend on who takes it.
template <typename Task>
void share_tasks(std::int64_t count, std::int64_t grain, const Task& task, WorkerPool::Order order = WorkerPool::Order::numbers) {
  const auto body = [](const void* context, std::int64_t first, std::int64_t last, std::int64_t worker) {
    const auto& own = *static_cast<const Task*>(context);
    for (auto i = first; i < last; ++i) own(i, worker);
  };
  WorkerPool::run({body, &task, count, grain, sharing_threads(), order});
}

/// Runs task(first, last) for parts of [0, size) of about `grain` on all threads. What is computed must not depend on the cut.
template <typename Task>
void share_ranges(std::int64_t size, std::int64_t grain, const Task& task) {
  const auto body = [](const void* context, std::int64_t first, std::int64_t last, std::int64_t) {
    (*static_cast<const Task*>(context))(first, last);
  };
  WorkerPool::run({body, &task, size, grain, sharing_threads(), WorkerPool::Order::near});
}

}  // namespace mpol::ops
