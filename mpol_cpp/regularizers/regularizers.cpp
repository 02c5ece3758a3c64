#include <mpol_cpp/regularizers/regularizers.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

const Regularizer& regularizer_of(TermKind kind) {
  switch (kind) {
#define MPOL_EACH(name, Type) \
  case TermKind::name:        \
    return regularizers::Type::descriptor();
    MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
    case TermKind::custom:
      break;
  }
  throw ValueError("a custom term is none of the library's regularizers");
}

const std::vector<TermKind>& all_regularizers() {
#define MPOL_EACH(name, Type) TermKind::name,
  static const std::vector<TermKind> all{MPOL_REGULARIZERS(MPOL_EACH)};
#undef MPOL_EACH
  return all;
}

bool is_fused(TermKind kind) { return driver_of(kind) != regularizers::Driver::none; }

}  // namespace mpol
