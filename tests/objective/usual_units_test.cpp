#include "catch.h"

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/regularizers/regularizers.h>

using namespace mpol;

TEST_CASE("usual weights are those of bright and of faint data, and between them along the logarithms", "[objective][quick]") {
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    CAPTURE(regularizer.name);
    if (!regularizer.automatic) {
      CHECK_THROWS_AS(usual_units(regularizer, 20), ValueError);
      continue;
    }
    const double bright = regularizer.automatic->bright, faint = regularizer.automatic->faint;
    const auto at = [&](double signal) { return usual_units(regularizer, signal); };
    for (const double signal : {0.0, 4.0, faint_signal}) CHECK(at(signal) == Approx(faint));
    for (const double signal : {bright_signal, 1e4}) CHECK(at(signal) == Approx(bright));
    const double middle = std::sqrt(faint_signal * bright_signal);
    CHECK(at(middle) == Approx(std::sqrt(bright * faint)).epsilon(0.05));  // two digits
    CHECK((at(middle) - at(0.8 * middle)) * (bright - faint) > 0);
    CHECK(at(middle) == at(middle * (1 + 1e-9)));  // bits of a transform do not matter
  }
}

TEST_CASE("a weight grows where the source fills less of the field, of bright data never falls", "[objective][quick]") {
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    CAPTURE(regularizer.name);
    if (!regularizer.automatic) continue;
    const auto& usual = *regularizer.automatic;
    const auto at = [&](double signal, double filled) { return usual_units(regularizer, signal, 1, filled); };
    for (const double signal : {5.0, 30.0, 500.0}) CHECK(at(signal, usual_filled) == usual_units(regularizer, signal));
    CHECK(at(5, usual_filled / 4) == Approx(usual.faint * std::pow(4, usual.faint_power)).epsilon(0.05));  // two digits
    CHECK(at(5, usual_filled * 9) == Approx(usual.faint * std::pow(9, -usual.faint_power)).epsilon(0.05));
    CHECK(at(500, usual_filled / 4) == Approx(usual.bright * std::pow(4, usual.bright_power)).epsilon(0.05));
    CHECK(at(500, usual_filled * 9) == usual.bright);
    CHECK(at(30, 0) == at(30, least_filled));
    CHECK(usual_units(regularizer, 60, 2, least_filled) == Approx(2 * at(30, least_filled)).epsilon(0.05));
  }
  CHECK(regularizer_of(TermKind::sparsity).automatic->faint_power > 0);
}

TEST_CASE("the share that is followed is that of a source that is seen, where it changes a weight", "[objective][quick]") {
  const DirtyPeaks faint{.brightest = 12, .darkest = 4, .on_any_scale = 14};
  CHECK(filled_to_follow(faint, 1, 0.006) == 0.006);
  CHECK(filled_to_follow(faint, 1, 0.3) == 0.3);
  CHECK(filled_to_follow(faint, 1, 1.3 * usual_filled) == usual_filled);
  CHECK(filled_to_follow(faint, 1, 0) == least_filled);
  CHECK(filled_to_follow(faint, 1, 0.0055, 0.005) == 0.005);  // of an image with weights for that
  CHECK(filled_to_follow(faint, 1, usual_filled, 0.005) == usual_filled);
  const DirtyPeaks bright{.brightest = 400, .darkest = 90, .on_any_scale = 500};
  CHECK(filled_to_follow(bright, 1, 0.3) == usual_filled);  // no weight of bright data falls
  CHECK(filled_to_follow(bright, 1, 0.006) == 0.006);
  // Large and faint: a map of points does not show how far it reaches.
  DirtyPeaks large{.brightest = 4, .darkest = 4, .on_any_scale = 9, .share_on_scale = 0.006};
  CHECK(filled_to_follow(large, 1, 0) == 0.006);
  CHECK(filled_to_follow({.brightest = 12, .darkest = 4, .on_any_scale = 18, .share_on_scale = 0.006}, 3, 0) == 0.006);
  large.share_on_scale = 0.4;
  CHECK(filled_to_follow(large, 1, 0) == usual_filled);
  large.share_on_scale = 1e-4;
  CHECK(filled_to_follow(large, 1, 0) == least_filled);
  CHECK(filled_to_follow({.brightest = 4, .darkest = 4, .on_any_scale = 4.5}, 1, 0.02) == least_filled);  // noise
}

TEST_CASE("usual weights of channels are those of each channel's own signal and noise", "[objective][quick]") {
  const std::vector<ChannelSignal> signals = {{{.brightest = 300, .darkest = 4, .on_any_scale = 300}, 2e-3},
                                              {{.brightest = 4, .darkest = 4, .on_any_scale = 4.5}, 1e-3},
                                              {{.brightest = 30, .darkest = 4, .on_any_scale = 40}, 4e-3}};
  const std::vector<double> filled = {usual_filled, least_filled, 0.1};
  for (const auto kind : all_regularizers()) {
    const auto& regularizer = regularizer_of(kind);
    if (!regularizer.automatic) continue;
    CAPTURE(regularizer.name);
    const auto term = with_usual_weights(Term::known(kind, 0), signals, 1.5, filled);
    for (std::size_t c = 0; c < signals.size(); ++c) {
      const double units = usual_units(regularizer, signals[c].peaks.brightest, 1.5, filled[c]);
      CHECK(term.weight(0, c) == Approx(units * signals[c].unit));
    }
  }
  CHECK_THROWS_AS(with_channel_weights(terms::tv_channel(1), {1, 2}), ValueError);
  const auto dark = with_channel_weights(terms::tsv(1), {0, 0});
  CHECK(dark.weight(0, 1) == 0);
  CHECK(weigh_alike(dark, terms::tsv(0).with_channel_factors({0, 0})));
  CHECK_FALSE(weigh_alike(dark, terms::tsv(0)));
}
