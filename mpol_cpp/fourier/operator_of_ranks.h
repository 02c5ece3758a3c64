#pragma once

#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/fourier/normal_operator.h>

namespace mpol {

/// The normal operator of visibilities of which every rank holds a share of the samples: each transforms its own, and the sums go
/// to all once. It is NormalOperator::of() all of them to rounding.
/// @param own  null where a rank has none
/// @throws DataError when baselines do not fit the grid; RankError when another rank fails
NormalOperator operator_of_shares(const GridCoords& coords, const Visibilities* own, const ChannelMap& channels,
                                  Communicator& ranks, KernelStorage storage = {});

/// The same of visibilities that every rank holds whole; of one rank it is NormalOperator::of() itself.
NormalOperator operator_of_ranks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                 Communicator& ranks, KernelStorage storage = {});

}  // namespace mpol
