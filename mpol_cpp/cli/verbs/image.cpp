#include <memory>
#include <string>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/run/image_run.h>
#include <mpol_cpp/cli/program/verb.h>

namespace mpol::cli {
namespace {

constexpr const char* lambda_words =
    "LAMBDA of a regulariser: a number; 0.3U, in units of the noise; auto, the usual 1U of sparsity, 0.3U of tv, 0.5U of "
    "tv-slope;\n"
    "cv, by cross-validation; 0.1U:10U:5 or 1e-4:1e-2:5, the best of so many values by cross-validation";

Verb add(CLI::App& program, const std::string& name, const std::string& description, const std::string& examples, bool searches) {
  auto* app = program.add_subcommand(name, description);
  app->footer(std::string(lambda_words) + "\n\n" + examples);
  const auto options = std::make_shared<ImageOptions>();
  options->searches_by_itself = searches;
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return run_image(*options, *settings); }};
}

}  // namespace

Verb add_image(CLI::App& program) {
  return add(program, "image", "Make an image that fits visibilities and priors",
             "Example:\n  mpol image vis.npz -o disc\n  mpol image vis.npz -o disc --cell-size 0.03 --npix 180\n"
             "  mpol image --config disc/run.toml -o again     # the same again",
             false);
}

Verb add_crossval(CLI::App& program) {
  return add(program, "crossval", "Choose LAMBDA by cross-validation, and make the image with it",
             "Example:\n  mpol crossval vis.npz -o scan\n"
             "  mpol crossval vis.npz -o scan --cell-size 0.03 --npix 180 --sparsity 0.1U:10U:5 --tv 0.3U",
             true);
}

}  // namespace mpol::cli
