#pragma once

#include <clocale>
#include <cstdlib>
#include <locale>
#include <string>

#include "temporary_folder.h"

namespace mpol::testing {

/// A decimal comma in streams and, where the system has such a locale or can make one (localedef), in the C library; all is as
/// it was when the scope ends.
class CommaLocale {
 public:
  CommaLocale() : streams_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {
    for (const auto* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) return;
    }
    const auto made = folder_ / "de_DE.UTF-8";
    if (std::system(("localedef -i de_DE -f UTF-8 '" + made.string() + "' >/dev/null 2>&1").c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    ::unsetenv("LOCPATH");
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, c_library_.c_str());
    std::locale::global(streams_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  TemporaryFolder folder_;
  std::string c_library_ = std::setlocale(LC_ALL, nullptr);
  std::locale streams_;
};

}  // namespace mpol::testing
