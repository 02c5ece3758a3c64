#pragma once

#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/fourier/normal_operator.h>

namespace mpol {

/// The normal operator of visibilities that every rank holds: each transforms its share of the samples, and the sums go to all
/// once. It is NormalOperator::of() to rounding; of one rank it is the very same.
/// @throws DataError when baselines do not fit the grid; RankError when another rank fails
NormalOperator operator_of_ranks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                 Communicator& ranks, KernelStorage storage = {});

}  // namespace mpol
