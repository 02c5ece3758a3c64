#pragma once

/// Everything of mpol::io that a program needs: reading and writing visibilities and images, and figures.

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/mapped_npy.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/plot/comparison_figure.h>
#include <mpol_cpp/plot/coverage_figure.h>
#include <mpol_cpp/plot/image_figure.h>
#include <mpol_cpp/plot/profile_figure.h>
#include <mpol_cpp/plot/residual_figure.h>
#include <mpol_cpp/plot/split_figure.h>
#include <mpol_cpp/plot/summary_figure.h>
#include <mpol_cpp/plot/training_figure.h>
#include <mpol_cpp/plot/visibility_figure.h>
