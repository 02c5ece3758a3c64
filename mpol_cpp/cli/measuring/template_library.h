#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/matching/polar_templates.h>
#include <mpol_cpp/cli/options/polar_grid.h>
#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// Where `mpol match` has its templates from.
struct TemplateLibraryOptions {
  std::filesystem::path file;
  std::string shapes;  ///< of --generate
};

void declare(OptionSet& options, TemplateLibraryOptions& library);

/// After parsing: there are templates, and their path does not depend on the working directory. @throws UsageError
void settle(TemplateLibraryOptions& library);

/// Bins as they are asked for; of those that are not, the ones that templates of a file have already.
PolarGridOptions with_bins_of_file(const TemplateLibraryOptions& library, PolarGridOptions options);

/// Templates with their names.
struct TemplateLibrary {
  PolarTemplates templates;
  std::vector<std::string> names;  ///< "lib.npz[3]", "ring:0.5:0.1"
};

/// All templates in these bins: those of the file, then those that are generated.
/// @throws mpol::Error where a file cannot be read or does not hold templates in these bins
TemplateLibrary read_templates(const TemplateLibraryOptions& library, const PolarGrid& grid);

}  // namespace mpol::cli
