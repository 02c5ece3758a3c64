#include <mpol_cpp/distributed/caller_stream.h>

namespace mpol::detail {

void* stream_of_caller(torch::Device /*device*/) { return nullptr; }

}  // namespace mpol::detail
