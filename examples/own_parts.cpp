// A likelihood, a model, a prior and a pixel mapping of one's own, each as short as it can be. The library's parts and these
// go together in every combination.
//
// usage: own_parts [visibilities.npz] [image.fits] [epochs]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

using torch::Tensor;

// A likelihood: -2 ln L of cell averages by Huber's function, in which a cell that lies k standard deviations off counts
// linearly. Two functions; the gradient comes from autograd, the rest from the base classes.
class HuberCellsImpl : public mpol::Module<HuberCellsImpl>, public mpol::Likelihood {
 public:
  HuberCellsImpl(const mpol::GriddedDataset& dataset, double k)
      : mpol::Likelihood(dataset->coords()), dataset_(dataset), fourier_(dataset->coords()), k_(k) {
    reset();
  }
  // Registers the tensors and modules that move with .to(device); each copy has its own.
  void reset() override {
    dataset_ = register_module("dataset", std::dynamic_pointer_cast<mpol::GriddedDatasetImpl>(dataset_->clone()));
    register_module("fourier", fourier_);
  }

  Tensor chi_squared(const Tensor& sky) override {  // (…, nchan, npix, npix) -> (…)
    const auto residual = dataset_->at_cells(fourier_->forward(sky)) - dataset_->visibilities();
    const auto x = at::view_as_real(residual).square().sum({-1}) * dataset_->weights();
    const auto beyond = 2 * k_ * x.clamp_min(k_ * k_).sqrt() - k_ * k_;
    return at::where(x <= k_ * k_, x, beyond).sum({-1});
  }
  double normalizer() const override { return static_cast<double>(dataset_->ncells()); }

 private:
  mpol::GriddedDataset dataset_;
  mpol::FourierCube fourier_;
  double k_;
};
TORCH_MODULE(HuberCells);

// A model: a round ring of Gaussian profile. One function.
class RingImpl : public mpol::Module<RingImpl>, public mpol::ImageModel {
 public:
  explicit RingImpl(const mpol::GridCoords& coords) : mpol::ImageModel(coords) { reset(); }
  void reset() override {
    x_ = register_buffer("x", coords().sky_x().to(torch::kFloat32));  // arcsec to the East
    y_ = register_buffer("y", coords().sky_y().to(torch::kFloat32));  // arcsec to the North
    ring_ = register_parameter("ring", at::tensor({0.0F, 0.0F, 0.8F, std::log(0.3F), std::log(1.0F)}));
  }

  Tensor make_sky() override {  // (1, npix, npix), Jy/arcsec^2
    const auto r = ((x_ - ring_[0]).square() + (y_ - ring_[1]).square() + 1e-8).sqrt();
    const auto shape = at::exp(-0.5 * ((r - ring_[2]) / width()).square());
    return (flux() * shape / (shape.sum() * coords().cell_area())).unsqueeze(0);
  }
  Tensor radius() const { return ring_[2]; }       // arcsec
  Tensor width() const { return ring_[3].exp(); }  // arcsec
  Tensor flux() const { return ring_[4].exp(); }   // Jy

 private:
  Tensor x_, y_, ring_;
};
TORCH_MODULE(Ring);

// A pixel mapping: any base pixel makes a positive intensity, and the inverse finds the base pixels of a start image.
mpol::PixelMapping exponential() {
  return {"exp", [](const Tensor& base) { return at::exp(base); }, [](const Tensor& intensity) { return at::log(intensity); }};
}

// A prior: the flux is known to be about so much, in Jy, with this uncertainty.
mpol::Term known_flux(double flux, double uncertainty) {
  return {"known_flux", 1.0, [=](const mpol::ModelOutput& out) {
            return ((mpol::flux(out.sky, out.coords()).sum({-1}) - flux) / uncertainty).square();
          }};
}

void check(bool holds, const std::string& what) {
  if (!holds) throw mpol::Error("this should not be: " + what);
}

void run(const std::string& input, const std::string& output, int epochs) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto averager =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off));
  const auto dataset = averager.to_dataset();

  // Where no cell lies beyond k, Huber's function is chi^2.
  const auto sky = mpol::GriddedNet(mpol::GriddedNetOptions(coords).start(-3)).ptr()->make_sky().detach();
  const double own = HuberCells(dataset, 1e6)->chi_squared(sky).item<double>();
  const double library = mpol::GriddedLikelihood(dataset)->chi_squared(sky).item<double>();
  fmt::print("chi^2 {:.6g} by this program, {:.6g} by the library\n", own, library);
  check(std::abs(own / library - 1) < 1e-4, "they differ");

  // The ring alone: five parameters.
  Ring ring(coords);
  const auto huber = HuberCells(dataset, 3.0);
  const auto of_ring = mpol::Trainer(ring, mpol::Objective(huber), mpol::TrainOptions().learning_rate(0.03).epochs(300)).fit();
  fmt::print("ring: {:.3g} Jy at {:.3g} arcsec, {:.3g} arcsec wide; loss {:.5g}, at first {:.5g}\n", ring->flux().item<double>(),
             ring->radius().item<double>(), ring->width().item<double>(), of_ring.loss.total(), of_ring.history.front().total());
  check(of_ring.loss.total() < 0.7 * of_ring.history.front().total(), "the ring does not fit");
  check(ring->radius().item<double>() > 0.7 && ring->radius().item<double>() < 1.3, "the radius of HD 142527's ring");

  // Pixels by the mapping and with the prior, from the ring on.
  const auto mapping = exponential();
  const auto start = mapping.inverse(ring->make_sky().detach() + 1e-3);
  mpol::GriddedNet net(mpol::GriddedNetOptions(coords).base_cube(start).pixel_mapping(mapping));
  const double flux = ring->flux().item<double>();
  const mpol::Objective objective(huber, {known_flux(flux, 0.01 * flux), mpol::terms::tv_image(1e-4)});
  const auto of_pixels = mpol::Trainer(net, objective, mpol::TrainOptions().learning_rate(0.1).epochs(epochs)).fit();
  const auto image = net->make_sky();
  const double imaged = mpol::flux(image, coords).sum().item<double>();
  fmt::print("pixels: {:.4g} Jy; loss {:.5g} after {} epochs, at first {:.5g}; {} steps ({})\n", imaged, of_pixels.loss.total(),
             of_pixels.epochs, of_pixels.history.front().total(), mpol::to_string(of_pixels.step), of_pixels.step_reason);
  check(of_pixels.loss.nll() < 0.7 * of_ring.loss.nll(), "pixels fit better than a ring");
  check(std::abs(imaged / flux - 1) < 0.1, "the prior holds the flux");

  mpol::io::write_fits(output, image, coords);
  fmt::print("image written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 300;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "own_parts.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_parts: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
