#include <mpol_cpp/crossval/cross_validator.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/fourier/fourier_cube.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {
namespace {

constexpr double faint = 1e-4;  // of an image's peak: no pixel that counts
constexpr std::int64_t numbers_of_score = 7;

/// W |V - M|^2 of each cell. @param sky  (nchan, npix, npix) float64 on the CPU
Tensor cell_residuals(const GriddedDataset& cells, const Tensor& sky) {
  const auto model = cells->at_cells(FourierCube(cells->coords())->forward(sky));
  return (model - cells->visibilities()).abs().square() * cells->weights();
}

/// Values around a start in half decades, those within an axis' bounds.
std::vector<double> usual_values(const SearchAxis& axis) {
  std::vector<double> values;
  for (const double decades : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    const double c = axis.start * std::pow(10.0, decades);
    if (c >= axis.low && c <= axis.high) values.push_back(c);
  }
  return values;
}

/// sum w Re(conj(e) M) of an image's visibilities M and of the noise e that perturbed data have more, but for a constant: their
/// chi^2 differs from that of the data by it.
double share_of_perturbation(const std::vector<FoldData>& data, const Tensor& sky) {
  const double difference = (data[0].train->chi_squared(sky) - data[1].train->chi_squared(sky)).item<double>();
  return difference / (2 * data[1].perturbation);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

/// From a point of a compass to a neighbour.
struct CompassStep {
  std::size_t axis;
  double factor;
};

bool is_same(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double rounding = 1e-9;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= rounding * std::max(x, y); });
}

}  // namespace

Search Search::compass(double decades, std::int64_t most_points) {
  if (!(decades > 0) || most_points < 1)
    throw ValueError(fmt::format("a compass of steps of {} decades and {} points: both must be above 0", decades, most_points));
  Search search(Kind::compass);
  search.decades_ = decades;
  search.most_points_ = most_points;
  return search;
}

Search Search::grid() { return Search(Kind::grid); }

Search Search::random(std::int64_t points, std::uint64_t seed) {
  if (points < 1) throw ValueError(fmt::format("a search of {} random points: it needs at least 1", points));
  Search search(Kind::random);
  search.most_points_ = points;
  search.seed_ = seed;
  return search;
}

CrossValidator::CrossValidator(std::vector<FoldData> folds, const FoldModel& model, std::vector<Term> terms,
                               std::vector<SearchAxis> axes, CrossValidatorOptions options)
    : folds_(std::move(folds)),
      terms_(std::move(terms)),
      options_(std::move(options)),
      warm_score_(std::numeric_limits<double>::infinity()) {
  check_data();
  divide_folds();
  if (axes.empty()) throw ValueError("a cross-validation without an axis has nothing to choose");
  for (const auto& axis : axes) {
    const auto term = std::find_if(terms_.begin(), terms_.end(), [&](const Term& own) { return own.name() == axis.term; });
    if (term == terms_.end())
      throw ValueError(fmt::format("no term of the objective is called {}, whose weight is searched", axis.term));
    if (!(axis.unit > 0 && axis.start > 0 && axis.low > 0 && axis.high >= axis.low)) {
      throw ValueError(fmt::format("the search of {} has the unit {}, the start {} and the bounds {} and {}; all must be above 0",
                                   axis.term, axis.unit, axis.start, axis.low, axis.high));
    }
    for (const double c : axis.values) {
      if (!(c >= 0 && std::isfinite(c))) throw ValueError(fmt::format("{} is no value of c for {}", c, axis.term));
    }
    searched_.push_back(static_cast<std::size_t>(term - terms_.begin()));
  }
  scan_.axes = std::move(axes);
  for (const auto& fold : folds_) {
    fits_.emplace_back(model(fold), fold.train, options_.normalize(), options_.train());
    warm_.push_back(fits_.back().parameters());
  }
  group_folds();
}

void CrossValidator::check_data() const {
  if (folds_.size() < 2) throw ValueError(fmt::format("the number of folds is {}; it must be at least 2", folds_.size()));
  const bool perturbed = std::any_of(folds_.begin(), folds_.end(), [](const FoldData& fold) { return fold.perturbation != 0; });
  if (options_.score() == Score::folds) {
    if (perturbed) throw ValueError("data of white_noise_data() are not folds: take Score::sure or Score::gcv");
    return;
  }
  if (folds_.size() != 2 || folds_[0].perturbation != 0 || !(folds_[1].perturbation > 0))
    throw ValueError(fmt::format("the score {} is for the data of white_noise_data()", to_string(options_.score())));
}

Scan CrossValidator::run() {
  const auto begin = std::chrono::steady_clock::now();
  load();
  switch (options_.search().kind()) {
    case Search::Kind::compass:
      search_compass();
      break;
    case Search::Kind::grid:
      search_points(grid_points());
      break;
    case Search::Kind::random:
      search_points(random_points());
      break;
  }
  if (!scan_.interrupted) scan_.choose();
  if (options_.score() != Score::folds) scan_.folds_kind = "white noise";
  scan_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return scan_;
}

void CrossValidator::search_compass() {
  const double factor = std::pow(10.0, options_.search().decades());
  std::vector<double> center;
  for (const auto& axis : scan_.axes) center.push_back(std::clamp(axis.start, axis.low, axis.high));
  // Larger weights first, whose fits converge faster. The last axes, which are those of variation, decide most often.
  std::vector<CompassStep> steps;
  for (std::size_t axis = center.size(); axis-- > 0;) {
    for (const double by : {factor, 1 / factor}) steps.push_back({axis, by});
  }
  const auto begin = evaluate(center);
  if (!begin) return;
  auto best = *begin;
  for (auto step = steps.begin(); step != steps.end();) {
    const auto& axis = scan_.axes[step->axis];
    auto c = center;
    c[step->axis] = std::clamp(c[step->axis] * step->factor, axis.low, axis.high);
    if (is_same(c, center)) {  // at the bound
      ++step;
      continue;
    }
    scan_.exhausted = !tried(c) && static_cast<std::int64_t>(scan_.points.size()) >= options_.search().most_points();
    if (scan_.exhausted) return;
    const auto point = evaluate(c);
    if (!point) return;
    if (scan_.points[*point].score() < scan_.points[best].score()) {
      best = *point;
      center = std::move(c);
      std::rotate(steps.begin(), step, step + 1);  // what has helped is tried first again
      step = steps.begin();
    } else {
      ++step;
    }
  }
}

void CrossValidator::search_points(const std::vector<std::vector<double>>& points) {
  for (const auto& c : points) {
    if (!evaluate(c)) return;
  }
}

std::vector<std::vector<double>> CrossValidator::grid_points() const {
  std::vector<std::vector<double>> points = {{}};
  for (const auto& axis : scan_.axes) {
    const auto values = axis.values.empty() ? usual_values(axis) : axis.values;
    std::vector<std::vector<double>> longer;
    for (const auto& point : points) {
      for (const double c : values) {
        longer.push_back(point);
        longer.back().push_back(c);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<std::vector<double>> CrossValidator::random_points() const {
  std::mt19937_64 engine(options_.search().seed());
  std::vector<std::vector<double>> points(static_cast<std::size_t>(options_.search().most_points()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto& axis : scan_.axes) {
      const double share = static_cast<double>(engine() >> 11) * 0x1p-53;  // the same on every machine
      points[i].push_back(i == 0 ? axis.start : axis.low * std::pow(axis.high / axis.low, share));
    }
  }
  return points;
}

std::optional<std::size_t> CrossValidator::tried(const std::vector<double>& c) const {
  for (std::size_t i = 0; i < scan_.points.size(); ++i) {
    if (is_same(scan_.points[i].c, c)) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> CrossValidator::evaluate(const std::vector<double>& c) {
  if (const auto known = tried(c)) return known;
  const bool is_kept = !kept_.empty() && is_same(kept_.front().c, c);
  if (is_kept) {
    scan_.points.push_back(std::move(kept_.front()));
    kept_.erase(kept_.begin());
  } else {
    kept_.clear();
    auto point = fit_point(c);
    if (!point) {
      scan_.interrupted = true;
      return std::nullopt;
    }
    scan_.points.push_back(std::move(*point));
    save();
  }
  if (options_.on_point()) options_.on_point()(scan_);
  return scan_.points.size() - 1;
}

std::vector<Term> CrossValidator::terms_at(const std::vector<double>& c) const {
  auto terms = terms_;
  for (std::size_t axis = 0; axis < searched_.size(); ++axis)
    terms[searched_[axis]] = terms[searched_[axis]].with_weights({c[axis] * scan_.axes[axis].unit});
  return terms;
}

double CrossValidator::penalty_of(ImageModel& model, const Tensor& sky) const {
  const ModelOutput output(model.coords(), model.base(), sky);
  double sum = 0;
  for (std::size_t axis = 0; axis < searched_.size(); ++axis)
    sum += scan_.axes[axis].unit * terms_[searched_[axis]].evaluate(output).sum().item<double>();
  return sum;
}

std::optional<ScanPoint> CrossValidator::fit_point(const std::vector<double>& c) {
  ScanPoint point{.c = c, .folds = {}, .cells = {}, .image = {}, .kind = options_.score(), .degrees_of_freedom = 0};
  const bool white = options_.score() != Score::folds;
  const auto terms = terms_at(c);
  std::vector<FoldResult> results(folds_.size());
  bool interrupted = false;
  for (const auto& group : groups_) {
    if (interrupted) break;
    const auto ends = fit_group(group, terms);
    for (std::size_t i = 0; i < ends.size() && !interrupted; ++i) {
      results[group.folds[i]] = result_of(group.folds[i], ends[i]);
      interrupted = results[group.folds[i]].interrupted;
    }
  }
  if (options_.ranks()) interrupted = options_.ranks()->any(interrupted);
  if (interrupted) return std::nullopt;
  std::vector<std::vector<Tensor>> fitted;
  std::vector<Tensor> cells, images;
  std::vector<double> shares;  // of white noise: the perturbation's part in each image
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    share_result(f, results[f]);
    ++scan_.fits;
    if (white) shares.push_back(results[f].share);
    fitted.push_back(std::move(results[f].parameters));
    if (white && f > 0) continue;
    point.folds.push_back(results[f].score);
    cells.push_back(results[f].cells);
    images.push_back(results[f].image);
  }
  if (white) point.degrees_of_freedom = (shares[1] - shares[0]) / folds_[1].perturbation;
  point.cells = at::cat(cells);
  point.image = at::stack(images).mean(0).to(torch::kFloat32);
  if (point.score() < warm_score_) {
    warm_score_ = point.score();
    warm_ = std::move(fitted);
  }
  return point;
}

void CrossValidator::divide_folds() {
  const auto& ranks = options_.ranks();
  if (!ranks) return;
  auto speeds = options_.speeds();
  if (speeds.empty()) speeds.assign(static_cast<std::size_t>(ranks->size()), 1.0);
  if (static_cast<std::int64_t>(speeds.size()) != ranks->size())
    throw ValueError(fmt::format("{} speeds of {} ranks: give one of each, or none", speeds.size(), ranks->size()));
  owners_ = owners_by_speed(static_cast<std::int64_t>(folds_.size()), speeds);
}

bool CrossValidator::is_mine(std::size_t fold) const { return !options_.ranks() || owners_[fold] == options_.ranks()->rank(); }

std::int64_t CrossValidator::folds_at_once(const std::vector<detail::FoldFit*>& own) const {
  if (options_.folds_at_once() > 0) return options_.folds_at_once();
  const auto base = own.front()->model().base();
  if (!base.is_cuda() || !detail::FoldBatch::obstacle(own, options_.train()).empty()) return 1;
  constexpr double bytes_of_exact_pixel = 140;  // for a while
  const auto pixels = static_cast<double>(base.numel());
  const double of_fold =
      pixels * (detail::FoldBatch::images_of_fold * static_cast<double>(base.element_size()) + bytes_of_exact_pixel);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(memory_info(base.device()).free_bytes) / 2 / of_fold));
}

void CrossValidator::group_folds() {
  if (options_.folds_at_once() < 0)
    throw ValueError(
        fmt::format("folds_at_once is {}; it must be at least 1, or 0 for the usual number", options_.folds_at_once()));
  std::vector<detail::FoldFit*> own;
  std::vector<std::size_t> numbers;
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    if (!is_mine(f)) continue;
    own.push_back(&fits_[f]);
    numbers.push_back(f);
  }
  if (own.empty()) return;
  const auto most = std::min<std::ptrdiff_t>(folds_at_once(own), std::ssize(own));
  scan_.folds_at_once = most;
  for (auto begin = own.begin(); begin != own.end();) {
    const auto count = std::min<std::ptrdiff_t>(most, own.end() - begin);
    const auto first = numbers.begin() + (begin - own.begin());
    FoldGroup group{{first, first + count}, nullptr};
    if (count > 1)
      group.batch =
          std::make_unique<detail::FoldBatch>(std::vector(begin, begin + count), options_.normalize(), options_.train());
    groups_.push_back(std::move(group));
    begin += count;
  }
}

std::vector<detail::FoldFit::End> CrossValidator::fit_group(const FoldGroup& group, const std::vector<Term>& terms) {
  for (const auto fold : group.folds) fits_[fold].set_parameters(warm_[fold]);
  if (group.batch) return group.batch->fit(terms);
  return {fits_[group.folds.front()].fit(terms)};
}

CrossValidator::FoldResult CrossValidator::result_of(std::size_t fold, const detail::FoldFit::End& end) {
  const auto& fit = fits_[fold];
  FoldResult result;
  result.interrupted = end.reason == StopReason::interrupted;
  if (result.interrupted) return result;
  const torch::NoGradGuard no_grad;
  const auto& data = folds_[fold];
  const auto sky = fit.model().make_sky().detach(), precise = sky.to(torch::kFloat64);
  const auto image = precise.to(torch::kCPU);
  const bool white = options_.score() != Score::folds;
  if (white) result.share = share_of_perturbation(folds_, precise);
  auto& score = result.score;
  score.chi_squared = data.test->chi_squared(precise).item<double>();
  // In the dtype of the fit, for which a likelihood has its plans: others would take memory of their own.
  const auto train = data.train->chi_squared(white ? precise : sky).item<double>();
  score.train = train / (2 * static_cast<double>(data.train->samples()));
  score.penalty = penalty_of(fit.model(), sky);
  if (end.reason == StopReason::diverged) score.chi_squared = std::numeric_limits<double>::infinity();
  score.samples = static_cast<double>(data.test->samples());
  score.epochs = end.epochs;
  score.flux = image.sum().item<double>() * fit.model().coords().cell_area();
  score.nonzero = (image > faint * image.max()).sum().item<std::int64_t>();
  result.cells = cell_residuals(data.test_cells, image);
  result.image = image[image.size(0) / 2];
  result.parameters = fit.parameters();
  return result;
}

void CrossValidator::share_result(std::size_t fold, FoldResult& result) {
  const auto& ranks = options_.ranks();
  if (!ranks || ranks->is_alone()) return;
  const auto owner = owners_[fold];
  const auto& [chi_squared, samples, epochs, flux, nonzero, train, penalty] = result.score;
  auto numbers = at::tensor(
      {chi_squared, samples, static_cast<double>(epochs), flux, static_cast<double>(nonzero), train, penalty, result.share},
      torch::kFloat64);
  ranks->broadcast(numbers, owner);
  const auto* number = numbers.const_data_ptr<double>();
  result.score = {number[0], number[1], static_cast<std::int64_t>(number[2]), number[3], static_cast<std::int64_t>(number[4]),
                  number[5], number[6]};
  result.share = number[7];
  const auto npix = fits_[fold].model().coords().npix();
  if (!is_mine(fold)) {
    result.cells = at::empty({folds_[fold].test_cells->ncells()}, torch::kFloat64);
    result.image = at::empty({npix, npix}, torch::kFloat64);
    result.parameters = fits_[fold].parameters();
  }
  for (auto* tensor : {&result.cells, &result.image}) {
    *tensor = tensor->contiguous();
    ranks->broadcast(*tensor, owner);
  }
  for (auto& parameter : result.parameters) {
    auto on_host = parameter.to(torch::kCPU).contiguous();
    ranks->broadcast(on_host, owner);
    parameter.copy_(on_host);
  }
  auto count = at::tensor({static_cast<std::int64_t>(fits_[fold].curvatures().size())}, torch::kInt64);
  ranks->broadcast(count, owner);
  auto curvatures = at::tensor(fits_[fold].curvatures(), torch::kFloat64);
  if (!is_mine(fold)) curvatures = at::empty({count.item<std::int64_t>()}, torch::kFloat64);
  ranks->broadcast(curvatures, owner);
  fits_[fold].set_curvatures({curvatures.const_data_ptr<double>(), curvatures.const_data_ptr<double>() + curvatures.numel()});
}

void CrossValidator::save() const {
  if (options_.state().empty() || (options_.ranks() && !options_.ranks()->is_first())) return;
  const auto points = static_cast<std::int64_t>(scan_.points.size()),
             folds = static_cast<std::int64_t>(scan_.points.front().folds.size());
  auto scores = at::empty({points, folds, numbers_of_score}, torch::kFloat64);
  auto values = at::empty({points, static_cast<std::int64_t>(scan_.axes.size())}, torch::kFloat64);
  auto* score = scores.mutable_data_ptr<double>();
  auto* value = values.mutable_data_ptr<double>();
  std::vector<Tensor> cells, images;
  std::vector<double> degrees;
  for (const auto& point : scan_.points) {
    value = std::copy(point.c.begin(), point.c.end(), value);
    for (const auto& fold : point.folds) {
      for (const double number : {fold.chi_squared, fold.samples, static_cast<double>(fold.epochs), fold.flux,
                                  static_cast<double>(fold.nonzero), fold.train, fold.penalty}) {
        *score++ = number;
      }
    }
    degrees.push_back(point.degrees_of_freedom);
    cells.push_back(point.cells);
    images.push_back(point.image);
  }
  NamedTensors tensors = {{"c", values},
                          {"scores", scores},
                          {"cells", at::stack(cells)},
                          {"images", at::stack(images)},
                          {"degrees_of_freedom", at::tensor(degrees, torch::kFloat64)}};
  for (std::size_t f = 0; f < warm_.size(); ++f) {
    for (std::size_t i = 0; i < warm_[f].size(); ++i) tensors[fmt::format("warm.{}.{}", f, i)] = warm_[f][i];
    tensors[fmt::format("curvatures.{}", f)] = at::tensor(fits_[f].curvatures(), torch::kFloat64);
  }
  write_safetensors(options_.state(), tensors, {{"fingerprint", joined(options_.fingerprint())}});
}

void CrossValidator::load() {
  if (options_.state().empty() || !std::filesystem::exists(options_.state())) return;
  auto file = read_safetensors(options_.state());
  if (file.metadata["fingerprint"] != joined(options_.fingerprint())) {
    log_warning(
        fmt::format("{} is of a cross-validation with other settings or data: the scan begins anew", options_.state().string()));
    return;
  }
  const auto find = [&](const std::string& name) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) throw FileError(fmt::format("{} has no {}", options_.state().string(), name));
    return found->second;
  };
  const auto values = find("c").contiguous(), scores = find("scores").contiguous(), cells = find("cells"),
             images = find("images"), degrees = find("degrees_of_freedom").contiguous();
  const auto points = values.size(0), axes = static_cast<std::int64_t>(scan_.axes.size()),
             folds = options_.score() == Score::folds ? static_cast<std::int64_t>(folds_.size()) : 1;
  const bool fits = values.dim() == 2 && values.size(1) == axes &&
                    scores.sizes() == at::IntArrayRef({points, folds, numbers_of_score}) && cells.dim() == 2 &&
                    cells.size(0) == points && images.dim() == 3 && images.size(0) == points && degrees.dim() == 1 &&
                    degrees.size(0) == points;
  if (!fits) throw FileError(fmt::format("{} does not fit this cross-validation", options_.state().string()));
  const auto* value = values.const_data_ptr<double>();
  const auto* score = scores.const_data_ptr<double>();
  for (std::int64_t i = 0; i < points; ++i) {
    ScanPoint point{.c = {value + i * axes, value + (i + 1) * axes},
                    .folds = {},
                    .cells = cells[i],
                    .image = images[i],
                    .kind = options_.score(),
                    .degrees_of_freedom = degrees.const_data_ptr<double>()[i]};
    for (std::int64_t f = 0; f < folds; ++f, score += numbers_of_score) {
      point.folds.push_back({score[0], score[1], static_cast<std::int64_t>(score[2]), score[3],
                             static_cast<std::int64_t>(score[4]), score[5], score[6]});
    }
    warm_score_ = std::min(warm_score_, point.score());
    kept_.push_back(std::move(point));
  }
  for (std::size_t f = 0; f < warm_.size(); ++f) {
    for (std::size_t i = 0; i < warm_[f].size(); ++i) warm_[f][i].copy_(find(fmt::format("warm.{}.{}", f, i)));
    const auto curvatures = find(fmt::format("curvatures.{}", f)).contiguous();
    fits_[f].set_curvatures({curvatures.const_data_ptr<double>(), curvatures.const_data_ptr<double>() + curvatures.numel()});
  }
}

}  // namespace mpol
