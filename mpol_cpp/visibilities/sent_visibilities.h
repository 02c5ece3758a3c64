#pragma once

#include <cstdint>
#include <functional>

#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>
#include <mpol_cpp/visibilities/visibility_share.h>

namespace mpol {

/// Hands a part of visibilities of the CPU, on disk or not, to another rank, which receives them: to the last bit, with
/// frequencies and observation. @throws RankError when it does not take them in time
void send_visibilities(const Visibilities& visibilities, const VisibilityShare& share, std::int64_t to, Communicator& ranks);

/// Those that another rank sends to this one.
/// @param room  where so many bytes of them are kept; in memory where it is empty
/// @throws RankError when none come in time
Visibilities receive_visibilities(std::int64_t from, Communicator& ranks,
                                  const std::function<ArrayRoom(double bytes)>& room = {});

}  // namespace mpol
