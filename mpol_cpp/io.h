#pragma once

/// Everything of mpol::io that a program needs: reading and writing visibilities and images.

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/mapped_npy.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/uv_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
