#include <cmath>

#include <mpol_cpp/cli/settings/config_file.h>
#include <mpol_cpp/cli/output/csv_table.h>
#include <mpol_cpp/simulation/array_configuration.h>

#include "input_file.h"
#include "readers.h"

namespace mpol::testing {
namespace {

/// Options of each kind, as a verb has them.
class Verb {
 public:
  Verb() : verb_("a verb", "image") {
    verb_.add_option("--npix", integer_);
    verb_.add_option("--cell-size", number_);
    verb_.add_option("--more-data", texts_)->delimiter(',');
    for (const auto* name : {"--data", "--start", "--channels", "--optimizer"}) verb_.add_option(name, text_);
    verb_.add_flag("--quiet", flag_);
  }
  const CLI::App& app() const { return verb_; }

 private:
  CLI::App verb_;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

}  // namespace

int fuzz_toml(const std::uint8_t* bytes, std::size_t size) {
  static const Verb verb;
  const auto path = input_file("input.toml", bytes, size);
  const int settings = refused([&] { cli::config_settings(path, verb.app()); });
  const int record = refused([&] { cli::recorded_run(path); });
  return settings != 0 && record != 0 ? 1 : 0;
}

std::vector<std::string> toml_corpus() {
  return {
      "npix = 180\n[image]\ncell-size = 0.03\nquiet = true\nmore-data = ['a.npz', \"b.npz\"]\nstart = \"flat:1\"\n[dirty]\nx = "
      "1\n",
      "# a run\n[image]\ndata = 'vis.npz'\nepochs = 20\ndevice = 'cpu'\n[record]\nversion = \"0.1.0\"\ndata_sha256 = \"ab\"\n"
      "epochs_done = 20\nstop_reason = \"epochs\"\nfingerprint = [\"npix = 180\", \"seed = 0\"]\n",
      "a.b.c = {d = [1, [2.5e3, -inf], 1979-05-27T07:32:00Z], e = 0x1F}\n[[f]]\ng = '''\nlines\n'''\n[[f]]\nh = \"\\u03bb\"\n"};
}

int fuzz_csv(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.csv", bytes, size);
  return refused([&] {
    const auto table = cli::read_csv(path);
    for (const auto& name : table.names) static_cast<void>(table[name].size());
  });
}

std::vector<std::string> csv_corpus() {
  return {"epoch,total,nll,learning_rate\n0,1.5,1.25,0.3\n1,1.25e-3,nan,0.3\n", "low,high,density,expected\r\n-5,-4,0,1e-7\r\n"};
}

int fuzz_antennas(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.cfg", bytes, size);
  return refused([&] { read_array_configuration(path); });
}

std::vector<std::string> antennas_corpus() {
  return {"# observatory=ALMA\n# coordsys=LOC (local tangent plane)\n# latitude = -23\n0 0 0 12. A001\n100 -50.5 1e1 12. A002\n",
          "# coordsys=XYZ\n2225000 -5440000 -2481000 12\n2225100 -5440100 -2481050 12\n"};
}

}  // namespace mpol::testing
