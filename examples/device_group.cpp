// A cube whose channels several devices fit together, each its own ones, with the losses and the end of one device's fit.
//
// usage: device_group [visibilities.npz] [image.fits] [devices: all, or a list such as cuda:0,cuda:1]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

using torch::Tensor;

void run(const std::string& input, const std::string& output, const std::string& names) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.05, /*npix=*/192);
  const auto nchan = visibilities.nchan();

  // What belongs to all channels: what chi^2 is divided by, the unit of lambda, and the image to start from.
  const auto channels = mpol::ChannelMap::cube(nchan);
  const double normalizer = mpol::ExactLikelihood(coords, visibilities, channels)->normalizer();
  const double unit = mpol::noise_unit(coords, visibilities, nchan, normalizer).slope;
  const auto start = mpol::softplus_mapping().inverse(mpol::auto_start(coords, visibilities, channels));

  auto chosen = mpol::select_devices(names);
  while (std::ssize(chosen) > nchan) chosen.pop_back();  // a device without a channel has nothing to do

  Tensor cube;
  double loss = 0;
  mpol::DeviceGroup devices(chosen);
  devices.run([&](const std::shared_ptr<mpol::Communicator>& ranks, torch::Device device) {
    const auto share = mpol::share_of(nchan, ranks->rank(), ranks->size());  // or shares_by_speed(nchan, devices.speeds())
    std::vector<std::int64_t> own(static_cast<std::size_t>(share.size()));
    std::iota(own.begin(), own.end(), share.begin);
    const auto likelihood =
        mpol::ExactLikelihood(coords, visibilities.select_channels(own), mpol::ChannelMap::cube(share.size()));
    const auto objective =
        mpol::Objective(likelihood, {mpol::terms::sparsity(unit), mpol::terms::tv_image(unit)}).divided_by(normalizer);
    const auto base = start.narrow(0, share.begin, share.size()).clone();
    auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(base).dtype(torch::kFloat32));
    const auto options = mpol::TrainOptions().device(device).ranks(ranks).learning_rate(0.1).epochs(200);
    const auto result = mpol::Trainer(model, objective, options).fit();

    const auto all = ranks->gather(model->make_sky().detach().to(torch::kCPU).contiguous());  // on the first rank alone
    if (ranks->is_first()) cube = all, loss = result.loss.total();
  });

  const auto flux = mpol::flux(cube, coords);
  fmt::print("{}: {} channels, loss {:.6g}; first {:.4f} Jy, last {:.4f} Jy\n", mpol::device_names(devices.devices()), nchan,
             loss, flux[0].item<double>(), flux[-1].item<double>());
  mpol::io::write_fits(output, cube, coords,
                       mpol::io::FitsOptions().frequencies(visibilities.frequencies()).observation(visibilities.observation()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/simulated_disc.npz", argc > 2 ? argv[2] : "device_group.fits", argc > 3 ? argv[3] : "all");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_group: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
