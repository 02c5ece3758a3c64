#include <memory>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_run.h>
#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {

Verb add_image(CLI::App& program) {
  auto* app = program.add_subcommand("image", "Make an image that fits visibilities and priors");
  app->footer(
      "Example:\n  mpol image vis.npz -o disc --cell-size 0.03 --npix 180 --sparsity 1e-3 --tv 1e-3\n"
      "  mpol image --config disc/run.toml -o again     # the same again");
  const auto options = std::make_shared<ImageOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return run_image(*options, *settings); }};
}

}  // namespace mpol::cli
