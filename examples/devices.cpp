// Devices: what there is, the least loaded one, a struct of one's own moved there, batches that pass through it, visibilities
// that it need not hold, what of its memory was in use, and a fit there.
//
// usage: devices [visibilities.npz]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// Any struct that lists its fields can be moved.
struct Sums {
  torch::Tensor weight = torch::zeros({}, torch::kFloat64);
  torch::Tensor weighted_data = torch::zeros({}, torch::kComplexDouble);
};
auto device_fields(Sums& sums) { return std::tie(sums.weight, sums.weighted_data); }

/// Some of the samples.
struct Batch {
  torch::Tensor data, weights;
};
auto device_fields(Batch& batch) { return std::tie(batch.data, batch.weights); }

void run(const std::string& input) {
  for (const auto& gpu : mpol::gpu_info()) {
    fmt::print("{} {} {:.1f} GiB free\n", gpu.device.str(), gpu.name, static_cast<double>(gpu.memory.free_bytes) / 0x1p30);
  }
  const auto device = mpol::select_device_by_load();  // or select_device()
  fmt::print("using {}\n", device.str());

  Sums sums;
  mpol::move_to(sums, device);  // whatever lists its tensors, recursively; complex and integer ones too
  const auto visibilities = mpol::io::read_npz(input);
  std::vector<Batch> loader;
  const auto data = visibilities.data().flatten().split(10000), weights = visibilities.weights().flatten().split(10000);
  for (std::size_t i = 0; i < data.size(); ++i) loader.push_back({data[i], weights[i]});

  for (auto& batch : mpol::DeviceIterator(loader, device)) {  // pinned, prefetched, freed behind
    sums.weight += batch.weights.sum(torch::kFloat64);
    sums.weighted_data += (batch.data * batch.weights).sum(torch::kComplexDouble);
  }
  mpol::move_to(sums, torch::kCPU);
  const auto mean = (sums.weighted_data / sums.weight).item<c10::complex<double>>();
  fmt::print("{} batches; mean visibility {:.9g} {:+.9g}i Jy, sigma {:.9g} Jy\n", loader.size(), mean.real(), mean.imag(),
             1 / sums.weight.sqrt().item<double>());

  // chi^2 of all visibilities, 10000 at a time, where a device has no room for them: the same number wherever they lie.
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  auto chunks = mpol::ChunkedLikelihood(coords, visibilities, mpol::ChannelMap::cube(visibilities.nchan()),
                                        mpol::ChunkedLikelihoodOptions().chunk(10000));
  const auto sky = torch::zeros({visibilities.nchan(), 128, 128}, torch::TensorOptions(device).dtype(torch::kFloat32));
  auto gradient = torch::empty_like(sky);
  mpol::reset_peak_memory(device);
  for (const auto residency : {mpol::DataResidency::device, mpol::DataResidency::host, mpol::DataResidency::disk}) {
    chunks->set_residency(residency);  // also in a callback, amid a fit
    const auto value = chunks->value_and_gradient(sky, gradient, mpol::Accumulate::overwrite).item<double>();
    fmt::print("chi^2 of all {:.9g}; the likelihood keeps {:.1f} MiB\n", value,
               static_cast<double>(chunks->memory_bytes()) / 0x1p20);
  }
  fmt::print("{:.0f} MiB of memory at the peak\n", static_cast<double>(mpol::memory_use(device).peak) / 0x1p20);

  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).nchan(visibilities.nchan()).start(-3));
  const auto objective = mpol::Objective(chunks, {mpol::terms::sparsity(1e-4)});
  const auto options = mpol::TrainOptions().device(device).learning_rate(0.3).epochs(10);
  const auto result = mpol::Trainer(model, objective, options).fit();  // the model is on the device now
  const auto copy = mpol::to_host(model);                              // a copy; the model stays where it is
  fmt::print("loss {:.6g}, at first {:.6g}; model on {}, its copy on {}\n", result.loss.total(), result.history.front().total(),
             mpol::device_of(model).str(), mpol::device_of(copy).str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "devices: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
