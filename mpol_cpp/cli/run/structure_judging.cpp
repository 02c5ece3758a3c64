#include <mpol_cpp/cli/run/structure_judging.h>

#include <mpol_cpp/cli/options/structure_regions.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/plot/figures/error_figure.h>

namespace mpol::cli {

StructureSummary JudgedRegion::summary() const {
  return {.name = name,
          .region = text,
          .pixels = judged.pixels,
          .places = judged.places,
          .f_image = judged.f_image,
          .filled_excess = judged.filled_excess,
          .least_excess = judged.least_excess,
          .bound = judged.bound,
          .bound_of_image = judged.bound_of_image,
          .sigma = judged.sigma(),
          .is_real = judged.is_real(),
          .is_real_by_all_pixels = judged.is_real_by_all_pixels(),
          .flux = judged.flux};
}

std::vector<JudgedRegion> marked_regions(const ImageOptions& options, const SkyTarget& target) {
  std::vector<JudgedRegion> regions;
  for (const auto& region : parse_structures(options.structures)) {
    const auto npix = target.coords.npix();
    regions.push_back({region.name(), region.text(), region.pixels(target).expand({target.nchan, npix, npix}), {}});
  }
  return regions;
}

void judge_structures(std::vector<JudgedRegion>& regions, GriddedNet model, const Objective& objective, double noise_factor,
                      ImageSummary& summary) {
  if (regions.empty()) return;
  const Stopwatch watch(summary.seconds.structures);
  if (const auto why = StructureTest::obstacle(*model, objective); !why.empty()) {
    throw UsageError(error_text("--test-structure", regions.front().text, "structures are judged in convex fits alone: " + why,
                                "leave --test-structure out"));
  }
  const StructureTest test(
      model.ptr(), objective,
      StructureTestOptions().level(level_of_structures).noise_factor(noise_factor).on_iteration([] { stop_if_requested(); }));
  for (auto& region : regions) {
    region.judged = test.judge(region.region);
    summary.structures.push_back(region.summary());
  }
}

plot::Page structure_page(const std::vector<JudgedRegion>& regions, const GridCoords& coords) {
  std::vector<plot::StructureFigure> figures;
  figures.reserve(regions.size());
  for (const auto& region : regions)
    figures.push_back({region.name, region.region, region.judged.image, region.judged.filled, region.judged.least});
  return plot::structure_page(figures, coords);
}

}  // namespace mpol::cli
