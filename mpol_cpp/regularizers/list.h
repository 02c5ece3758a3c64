#pragma once

// The list of the regularizers. C++17 without LibTorch, as formula.h.
#include <type_traits>
#include <utility>

#include <mpol_cpp/regularizers/edge_clamp.h>
#include <mpol_cpp/regularizers/entropy.h>
#include <mpol_cpp/regularizers/group_sparsity.h>
#include <mpol_cpp/regularizers/psd.h>
#include <mpol_cpp/regularizers/sparsity.h>
#include <mpol_cpp/regularizers/spectral_smoothness.h>
#include <mpol_cpp/regularizers/tsv.h>
#include <mpol_cpp/regularizers/tv_channel.h>
#include <mpol_cpp/regularizers/tv_image.h>
#include <mpol_cpp/regularizers/tv_slope.h>
#include <mpol_cpp/regularizers/uv_sparsity.h>
#include <mpol_cpp/regularizers/wavelets.h>

/// Each regularizer's name in TermKind and in namespace terms, and its type, in the order of options and of columns in reports.
#define MPOL_REGULARIZERS(EACH)                 \
  EACH(sparsity, Sparsity)                      \
  EACH(tv_image, TvImage)                       \
  EACH(tsv, Tsv)                                \
  EACH(entropy, Entropy)                        \
  EACH(tv_channel, TvChannel)                   \
  EACH(edge_clamp, EdgeClamp)                   \
  EACH(psd, Psd)                                \
  EACH(uv_sparsity, UvSparsity)                 \
  EACH(group_sparsity, GroupSparsity)           \
  EACH(spectral_smoothness, SpectralSmoothness) \
  EACH(tv_slope, TvSlope)                       \
  EACH(wavelets, Wavelets)

namespace mpol {

/// The library's own regularizers, counted from 0; `custom` is anything else.
enum class TermKind {
#define MPOL_EACH(name, Type) name,
  MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
      custom
};
inline constexpr int regularizer_count = static_cast<int>(TermKind::custom);

namespace regularizers {

template <TermKind kind>
struct TypeOf;
#define MPOL_EACH(name, Type)     \
  template <>                     \
  struct TypeOf<TermKind::name> { \
    using type = Type;            \
  };
MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
/// The type of a regularizer.
template <TermKind kind>
using Known = typename TypeOf<kind>::type;

/// Some of the regularizers.
template <TermKind... kinds>
struct Kinds {
  static constexpr int count = sizeof...(kinds);
};

namespace detail {

/// Lists one after the other.
template <typename... Lists>
struct Joined {
  using type = Kinds<>;
};
template <TermKind... kinds>
struct Joined<Kinds<kinds...>> {
  using type = Kinds<kinds...>;
};
template <TermKind... first, TermKind... second, typename... Others>
struct Joined<Kinds<first...>, Kinds<second...>, Others...> : Joined<Kinds<first..., second...>, Others...> {};

template <bool is_in, TermKind kind>
using If = std::conditional_t<is_in, Kinds<kind>, Kinds<>>;

template <Driver driver, typename All>
struct OfDriver;
template <Driver driver, TermKind... kinds>
struct OfDriver<driver, Kinds<kinds...>> : Joined<If<Known<kinds>::driver == driver, kinds>...> {};

template <Cost cost, typename All>
struct OfCost;
template <Cost cost, TermKind... kinds>
struct OfCost<cost, Kinds<kinds...>> : Joined<If<Known<kinds>::cost == cost, kinds>...> {};

/// Those whose bit is set.
template <unsigned bits, typename All, typename Places>
struct Chosen;
template <unsigned bits, TermKind... kinds, int... places>
struct Chosen<bits, Kinds<kinds...>, std::integer_sequence<int, places...>> : Joined<If<(bits >> places & 1) != 0, kinds>...> {};

template <typename Places>
struct Every;
template <int... places>
struct Every<std::integer_sequence<int, places...>> {
  using type = Kinds<static_cast<TermKind>(places)...>;
};
/// All regularizers.
using All = typename Every<std::make_integer_sequence<int, regularizer_count>>::type;

}  // namespace detail

/// The regularizers of a driver, in the order of the list; of all, or among some.
template <Driver driver, typename All = detail::All>
using KindsOf = typename detail::OfDriver<driver, All>::type;
/// Those that look at other channels.
using JoiningKinds = typename detail::Joined<KindsOf<Driver::channels>, KindsOf<Driver::spectra>>::type;
/// Those of some that cost so much.
template <Cost cost, typename All>
using KindsOfCost = typename detail::OfCost<cost, All>::type;
/// A driver's regularizers of small cost, and those of large cost whose bit is set.
template <Driver driver, unsigned bits>
using KindsInUse = typename detail::Joined<
    KindsOfCost<Cost::small, KindsOf<driver>>,
    typename detail::Chosen<bits, KindsOfCost<Cost::large, KindsOf<driver>>,
                            std::make_integer_sequence<int, KindsOfCost<Cost::large, KindsOf<driver>>::count>>::type>::type;

}  // namespace regularizers

/// Where the fused step works a regularizer out, which says what pixels its stencil has. Driver::none for TermKind::custom.
constexpr regularizers::Driver driver_of(TermKind kind) {
  switch (kind) {
#define MPOL_EACH(name, Type) \
  case TermKind::name:        \
    return regularizers::Type::driver;
    MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
    case TermKind::custom:
      break;
  }
  return regularizers::Driver::none;
}

/// Settings of all regularizers, as they are unless somebody says otherwise.
struct RegularizerSettings {
  double of[regularizer_count][regularizers::most_settings] = {};

  static constexpr RegularizerSettings usual() {
    RegularizerSettings all;
    int at = 0;
#define MPOL_EACH(name, Type)                                                                            \
  for (int i = 0; i < regularizers::most_settings; ++i) all.of[at][i] = regularizers::Type::settings[i]; \
  ++at;
    MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
    return all;
  }

  /// The settings as formulas are given them.
  RegularizerSettings prepared() const {
    RegularizerSettings all = *this;
    int at = 0;
#define MPOL_EACH(name, Type) regularizers::Type::prepare(all.of[at++]);
    MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
    return all;
  }
};

}  // namespace mpol
