#include "stand_in_device.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace mpol::testing {
namespace {

constexpr auto stand_in_type = c10::DeviceType::PrivateUse1;
std::atomic<std::int64_t> operations{0};

torch::Device the_device() { return {stand_in_type, 0}; }

/// One device, one stream in which everything is done at once, events that are always there.
struct StandInGuard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return stand_in_type; }
  c10::Device exchangeDevice(c10::Device) const override { return the_device(); }
  c10::Device getDevice() const override { return the_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
  c10::Stream getNewStream(c10::Device, int) const override { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return c10::Stream(c10::Stream::DEFAULT, the_device());
  }
  c10::Stream exchangeStream(c10::Stream) const override { return c10::Stream(c10::Stream::DEFAULT, the_device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void*, void*, const c10::DeviceIndex) const override { return 0; }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, StandInGuard);

/// Autograd asks for the one accelerator that there is, and seeding for its random numbers.
struct StandInHooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return at::detail::getDefaultCPUGenerator(); }
};

[[maybe_unused]] const bool hooks_are_registered = [] {
  static StandInHooks hooks;
  c10::register_privateuse1_backend("standin");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

struct StandInAllocator : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, memory, &std::free, the_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

StandInAllocator& stand_in_allocator() {
  static StandInAllocator allocator;
  return allocator;
}
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &stand_in_allocator());

at::Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(c10::asIntArrayRefSlow(size, __FILE__, __LINE__), &stand_in_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(c10::asIntArrayRefSlow(size, __FILE__, __LINE__),
                                           c10::asIntArrayRefSlow(stride, __FILE__, __LINE__), &stand_in_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

/// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const auto values =
      at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.scalar_type()));
  return tensor.is_conj() ? values.conj() : values;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

void record_stream(at::Tensor&, c10::Stream) {}

void by_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  ++operations;
  at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&by_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  library.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  library.impl("resize_", TORCH_FN(at::native::resize_));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  library.impl("record_stream", TORCH_FN(record_stream));
}

/// What is conjugated when it is looked at goes to copy_from as it is: it would be copied to be resolved, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace

torch::Device stand_in_device() { return the_device(); }

std::int64_t operations_of_stand_in() { return operations; }

}  // namespace mpol::testing
