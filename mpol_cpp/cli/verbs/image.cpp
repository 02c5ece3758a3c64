#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/run/image_run.h>

namespace mpol::cli {
namespace {

constexpr const char* lambda_words =
    "LAMBDA of a regulariser: a number; 0.3U, in units of the noise; auto, what suits how far the source stands out of "
    "it;\n"
    "cv, by cross-validation; 0.1U:10U:5 or 1e-4:1e-2:5, the best of so many values by cross-validation";

constexpr VerbHelp image_help = {
    "image", "Make an image that fits visibilities and priors",
    "Example:\n  mpol image vis.npz -o disc\n  mpol image vis.npz -o disc --cell-size 0.03 --npix 180\n"
    "  mpol image --config disc/run.toml -o again     # the same again",
    lambda_words};

constexpr VerbHelp crossval_help = {"crossval", "Choose LAMBDA by cross-validation, and make the image with it",
                                    "Example:\n  mpol crossval vis.npz -o scan\n"
                                    "  mpol crossval vis.npz -o scan --cell-size 0.03 --npix 180 --sparsity 0.1U:10U:5 --tv 0.3U",
                                    lambda_words};

Verb as_fit(Verb verb) {
  verb.is_fit = true;
  return verb;
}

}  // namespace

Verb add_image(CLI::App& program) {
  return as_fit(add_verb<ImageOptions>(
      program, image_help, run_image,
      {"run.toml", "image.fits", "image_0000.fits", checkpoint_name, scan_name, unfinished_name, blocks_name, points_name}));
}

/// Its results are those of an image.
Verb add_crossval(CLI::App& program) {
  ImageOptions searching;
  searching.searches_by_itself = true;
  return as_fit(add_verb<ImageOptions>(program, crossval_help, run_image, {}, searching));
}

}  // namespace mpol::cli
