#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fft_backends.h>

// What we use of MKL's discrete Fourier transform interface. libtorch_cpu exports the functions; their header is not
// part of LibTorch. Values as documented for mkl_dfti.h (oneMKL Developer Reference, "DFTI").
extern "C" {
using MklLong = long;
struct MklDescriptor;
MklLong DftiCreateDescriptor_s_1d(MklDescriptor**, int domain, ...);
MklLong DftiCreateDescriptor_d_1d(MklDescriptor**, int domain, ...);
MklLong DftiSetValue(MklDescriptor*, int parameter, ...);
MklLong DftiCommitDescriptor(MklDescriptor*);
MklLong DftiComputeForward(MklDescriptor*, void*, ...);
MklLong DftiComputeBackward(MklDescriptor*, void*, ...);
MklLong DftiFreeDescriptor(MklDescriptor**);
char* DftiErrorMessage(MklLong status);
}

namespace mpol::ops::detail {
namespace {

namespace parameter {
constexpr int number_of_transforms = 7, conjugate_even_storage = 10, placement = 11, input_distance = 14, output_distance = 15,
              thread_limit = 27;
}
namespace value {
constexpr int complex_domain = 32, real_domain = 33, complex_complex = 39, not_in_place = 44;
}

void check(MklLong status, std::int64_t length) {
  if (status != 0) throw Error(fmt::format("MKL cannot transform lines of {} pixels: {}", length, DftiErrorMessage(status)));
}

/// A committed plan. MKL lets several threads compute with one at the same time.
class Plan {
 public:
  template <typename T>
  static Plan make(int domain, std::int64_t length) {
    Plan plan(length);
    const auto create = std::is_same_v<T, float> ? DftiCreateDescriptor_s_1d : DftiCreateDescriptor_d_1d;
    check(create(&plan.descriptor_, domain, static_cast<MklLong>(length)), length);
    plan.set(parameter::thread_limit, MklLong{1});
    return plan;
  }

  template <typename T>
  static Plan rows(const FftLayout& layout, std::int64_t count, std::int64_t input_distance, std::int64_t output_distance) {
    auto plan = make<T>(value::real_domain, layout.length);
    plan.set(parameter::placement, value::not_in_place);
    plan.set(parameter::conjugate_even_storage, value::complex_complex);
    plan.set(parameter::number_of_transforms, static_cast<MklLong>(count));
    plan.set(parameter::input_distance, static_cast<MklLong>(input_distance));
    plan.set(parameter::output_distance, static_cast<MklLong>(output_distance));
    check(DftiCommitDescriptor(plan.descriptor_), layout.length);
    return plan;
  }

  template <typename T>
  static Plan column(const FftLayout& layout) {
    auto plan = make<T>(value::complex_domain, layout.length);
    check(DftiCommitDescriptor(plan.descriptor_), layout.length);
    return plan;
  }

  Plan(Plan&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)), length_(other.length_) {}
  Plan& operator=(Plan&&) = delete;
  ~Plan() {
    if (descriptor_ != nullptr) DftiFreeDescriptor(&descriptor_);
  }

  template <typename... Lines>
  void forward(Lines*... lines) const {
    check(DftiComputeForward(descriptor_, lines...), length_);
  }
  template <typename... Lines>
  void inverse(Lines*... lines) const {
    check(DftiComputeBackward(descriptor_, lines...), length_);
  }

 private:
  explicit Plan(std::int64_t length) : length_(length) {}

  template <typename Value>
  void set(int name, Value to) {
    check(DftiSetValue(descriptor_, name, to), length_);
  }

  MklDescriptor* descriptor_ = nullptr;
  std::int64_t length_;
};

template <typename T>
class MklTransforms : public LineTransforms<T> {
 public:
  using LineTransforms<T>::batch;

  explicit MklTransforms(const FftLayout& layout)
      : layout_(layout),
        forward_batch_(Plan::rows<T>(layout, batch, layout.real_distance, layout.half_distance)),
        forward_row_(Plan::rows<T>(layout, 1, layout.real_distance, layout.half_distance)),
        inverse_batch_(Plan::rows<T>(layout, batch, layout.half_distance, layout.real_distance)),
        inverse_row_(Plan::rows<T>(layout, 1, layout.half_distance, layout.real_distance)),
        column_(Plan::column<T>(layout)) {}

  void forward_rows(const T* lines, std::complex<T>* halves, std::int64_t count) const override {
    in_batches(count, [&](std::int64_t row, bool whole) {
      (whole ? forward_batch_ : forward_row_)
          .forward(const_cast<T*>(lines) + row * layout_.real_distance, halves + row * layout_.half_distance);
    });
  }

  void inverse_rows(std::complex<T>* halves, T* lines, std::int64_t count) const override {
    in_batches(count, [&](std::int64_t row, bool whole) {
      (whole ? inverse_batch_ : inverse_row_).inverse(halves + row * layout_.half_distance, lines + row * layout_.real_distance);
    });
  }

  void forward_column(std::complex<T>* column) const override { column_.forward(column); }
  void inverse_column(std::complex<T>* column) const override { column_.inverse(column); }

 private:
  template <typename Transform>
  static void in_batches(std::int64_t count, const Transform& transform) {
    std::int64_t row = 0;
    for (; row + batch <= count; row += batch) transform(row, true);
    for (; row < count; ++row) transform(row, false);
  }

  FftLayout layout_;
  Plan forward_batch_, forward_row_, inverse_batch_, inverse_row_, column_;
};

}  // namespace

template <typename T>
std::unique_ptr<LineTransforms<T>> plan_mkl_transforms(const FftLayout& layout) {
  return std::make_unique<MklTransforms<T>>(layout);
}

template std::unique_ptr<LineTransforms<float>> plan_mkl_transforms(const FftLayout&);
template std::unique_ptr<LineTransforms<double>> plan_mkl_transforms(const FftLayout&);

}  // namespace mpol::ops::detail
