#pragma once

/// Everything of mpol::io that a program needs: reading and writing visibilities and images, and figures.

#include <mpol_cpp/io/any_fits.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>
#include <mpol_cpp/io/mapped_npy.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/measurement_set/model_column.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/polar_fits.h>
#include <mpol_cpp/io/readers/array_reader.h>
#include <mpol_cpp/io/readers/averaging_reader.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/io/uvfits/uvfits.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/comparison_figure.h>
#include <mpol_cpp/plot/figures/coverage_figure.h>
#include <mpol_cpp/plot/figures/error_figure.h>
#include <mpol_cpp/plot/figures/filter_figure.h>
#include <mpol_cpp/plot/figures/geometry_figure.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/figures/polar_figure.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/plot/figures/scan_figure.h>
#include <mpol_cpp/plot/figures/split_figure.h>
#include <mpol_cpp/plot/figures/summary_figure.h>
#include <mpol_cpp/plot/figures/training_figure.h>
#include <mpol_cpp/plot/figures/visibility_figure.h>
