#include "bindings.h"

#include <cmath>

#include <ATen/ops/empty.h>

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/steps/fused_loss.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol::python {
namespace {

/// What a callback of Python is shown after an epoch.
struct Epoch {
  std::int64_t epoch;
  std::map<std::string, double> loss;
  double seconds;
};

std::map<std::string, double> named_losses(const std::vector<std::string>& columns, const EpochLoss& loss) {
  std::map<std::string, double> named;
  for (std::size_t i = 0; i < columns.size(); ++i) named.emplace(columns[i], loss.values.at(i));
  return named;
}

/// The losses of all epochs by name, each (epochs) float64.
std::map<std::string, Tensor> history_of(const TrainResult& result) {
  std::map<std::string, Tensor> history;
  const auto epochs = static_cast<std::int64_t>(result.history.size());
  for (std::size_t column = 0; column <= result.columns.size(); ++column) {  // of a row: the learning rate, then the columns
    const auto values = at::empty({epochs}, torch::kFloat64);
    auto* const to = values.data_ptr<double>();
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) to[epoch] = result.history.row(static_cast<std::size_t>(epoch))[column];
    history.emplace(column == 0 ? "learning_rate" : result.columns[column - 1], values);
  }
  return history;
}

OptimizerKind optimizer_named(const std::string& name) {
  std::vector<std::pair<std::string, OptimizerKind>> kinds;
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs, OptimizerKind::pogm,
                          OptimizerKind::fista, OptimizerKind::admm}) {
    kinds.emplace_back(to_string(kind), kind);
  }
  return value_named("optimizer", name, kinds);
}

/// A trainer that ends where Ctrl-C was pressed.
class InterruptibleTrainer {
 public:
  InterruptibleTrainer(const std::shared_ptr<ImageModel>& model, const Objective& objective, TrainOptions options)
      : trainer_(model, objective, options.interrupted([interrupted = interrupted_] {
          const py::gil_scoped_acquire lock;
          // Taken out of Python at once: what of a fit is Python's runs once more at its end.
          if (!*interrupted && PyErr_CheckSignals() != 0) interrupted->emplace();
          return interrupted->has_value();
        })) {}

  TrainResult fit() {
    interrupted_->reset();
    auto result = [&] {
      const py::gil_scoped_release unlocked;
      return trainer_.fit();
    }();
    if (*interrupted_) throw py::error_already_set(**interrupted_);
    return result;
  }

 private:
  std::shared_ptr<std::optional<py::error_already_set>> interrupted_ = std::make_shared<std::optional<py::error_already_set>>();
  Trainer trainer_;
};

std::unique_ptr<InterruptibleTrainer> make_trainer(const std::shared_ptr<ImageModel>& model, const Objective& objective,
                                                   const std::string& optimizer, std::int64_t epochs, double learning_rate,
                                                   const std::optional<double>& tolerance, const py::object& device,
                                                   const std::optional<at::ScalarType>& dtype, std::uint64_t seed,
                                                   double stop_relative, const std::string& step,
                                                   const std::optional<std::filesystem::path>& checkpoint, bool resume,
                                                   const std::optional<std::function<bool(const Epoch&)>>& callback) {
  auto options = TrainOptions()
                     .optimizer(optimizer_named(optimizer))
                     .epochs(epochs)
                     .learning_rate(learning_rate)
                     .tolerance(tolerance)
                     .dtype(dtype)
                     .seed(seed)
                     .stop_relative(stop_relative)
                     .resume(resume);
  options.step(value_named<StepKind>(
      "step", step,
      {{"auto", StepKind::automatic}, {"eager", StepKind::eager}, {"captured", StepKind::captured}, {"fused", StepKind::fused}}));
  if (!device.is_none()) options.device(device_of(device));
  if (checkpoint) options.checkpoint(*checkpoint);
  if (callback) {
    options.callbacks({[function = *callback](const Progress& progress) {
      const bool proceed = function({progress.loss.epoch, named_losses(progress.columns, progress.loss), progress.seconds});
      return proceed ? CallbackAction::proceed : CallbackAction::stop;
    }});
  }
  return std::make_unique<InterruptibleTrainer>(model, objective, std::move(options));
}

/// A prior of the library with the settings of its descriptor, by position or by name.
void bind_term(py::module_& module, const char* name, TermKind kind) {
  const auto& own = regularizer_of(kind);
  std::string words = own.help + ".";
  for (const auto& setting : own.settings) {
    words += fmt::format(" {}{}{}.", setting.name, setting.unit.empty() ? "" : " in " + setting.unit,
                         setting.value ? fmt::format(", usually {:g}", *setting.value) : ", which must be given");
  }
  module.def(
      name,
      [kind](double weight, const py::args& positional, const py::kwargs& named) {
        const auto& of_term = regularizer_of(kind).settings;
        std::vector<double> settings;
        std::size_t used = 0;
        if (positional.size() > of_term.size()) throw py::type_error(fmt::format("it has {} settings", of_term.size()));
        for (const auto& setting : of_term) {
          if (settings.size() < positional.size()) {
            settings.push_back(positional[settings.size()].cast<double>());
          } else if (named.contains(setting.name)) {
            settings.push_back(named[setting.name.c_str()].cast<double>());
            ++used;
          } else if (setting.value) {
            settings.push_back(*setting.value);
          } else {
            throw py::type_error(fmt::format("{} is missing", setting.name));
          }
        }
        if (used != named.size()) throw py::type_error("a setting that it has not, or one given twice");
        return Term::known(kind, weight, settings);
      },
      py::arg("weight"), words.c_str());
}

void bind_terms(py::module_& parent) {
  py::class_<Term>(parent, "Term", "A prior with its weight lambda.")
      .def(py::init([](const std::string& name, double weight, std::function<Tensor(const ModelOutput&)> function) {
             return Term(name, weight, std::move(function));
           }),
           py::arg("name"), py::arg("weight"), py::arg("function"),
           "One of your own: a function of torch from a ModelOutput to one value for each problem, `out.sky.square().sum((-3, "
           "-2, -1))`.")
      .def_property_readonly("name", &Term::name, "Of its column in reports.")
      .def_property_readonly("weights", &Term::weights, "One for all problems, or one for each.")
      .def("with_weights", &Term::with_weights, py::arg("weights"), "The same with a weight for each problem of a batch.")
      .def("with_channel_factors", &Term::with_channel_factors, py::arg("factors"),
           "The same of a cube in which the value of each channel counts so many times.")
      .def_property_readonly("channel_factors", &Term::channel_factors, "What each channel's value counts; empty: 1.")
      .def("evaluate", &Term::evaluate, py::arg("output"), "The value without its weight.");
  auto module = parent.def_submodule("terms", "The priors of the library: lambda is the first argument. Formulas: losses.");
#define MPOL_EACH(name, Type) bind_term(module, #name, TermKind::name);
  MPOL_REGULARIZERS(MPOL_EACH)
#undef MPOL_EACH
}

}  // namespace

void bind_fit(py::module_& module) {
  bind_terms(module);

  py::class_<ObjectiveValue>(module, "ObjectiveValue",
                             "An objective at one image; each value is (…), one for each problem, differentiable.")
      .def_readonly("total", &ObjectiveValue::total, "The sum of the others.")
      .def_readonly("nll", &ObjectiveValue::nll, "chi^2 / (2 N).")
      .def_readonly("terms", &ObjectiveValue::terms, "Weighted, in their order.");
  py::class_<Objective>(module, "Objective", "chi^2 / (2 N) plus weighted priors.")
      .def(py::init(
               [](const std::shared_ptr<Likelihood>& likelihood, const std::vector<Term>& terms, const std::string& normalize) {
                 return Objective(
                     likelihood, terms,
                     value_named<Normalize>(
                         "normalize", normalize,
                         {{"cells", Normalize::cells}, {"visibilities", Normalize::visibilities}, {"none", Normalize::none}}));
               }),
           py::arg("likelihood"), py::arg("terms") = std::vector<Term>{}, py::arg("normalize") = "cells")
      .def(
          "evaluate", [](const Objective& self, ImageModel& model) { return self.evaluate(model); }, py::arg("model"), Unlocked(),
          "At a model's present image; total.backward() gives its gradient.")
      .def_property_readonly("columns", &Objective::columns, "total, nll, then the names of the terms.")
      .def_property_readonly("normalizer", &Objective::normalizer, "N, by twice which chi^2 is divided.");

  py::class_<FusedLoss>(module, "FusedLoss",
                        "An objective as a function of base pixels, with its gradient in the passes of the fused step, on the "
                        "CPU: for loops and optimizers of one's own, several times as fast as Objective.evaluate.")
      .def(py::init([](ImageModel& model, const Objective& objective) { return std::make_unique<FusedLoss>(model, objective); }),
           py::arg("model"), py::arg("objective"), "Raises ValueError with the reason where there are no such passes.")
      .def("__call__", &FusedLoss::operator(), py::arg("base"), Unlocked(),
           "The total of each problem, differentiable once; base: like the model's base pixels.")
      .def_property_readonly("losses", &FusedLoss::losses, "Of the last call, (columns, problems), as Objective.columns.");

  py::class_<Epoch>(module, "Epoch", "What a callback is shown.")
      .def_readonly("epoch", &Epoch::epoch, "From 0.")
      .def_readonly("loss", &Epoch::loss, "By column, before the update of this epoch.")
      .def_readonly("seconds", &Epoch::seconds, "Of training so far.");

  py::class_<TrainResult>(module, "TrainResult", "How a fit went.")
      .def_property_readonly("history", &history_of, "The losses of all epochs by column, each (epochs) float64.")
      .def_property_readonly(
          "loss", [](const TrainResult& self) { return named_losses(self.columns, self.loss); }, "Of the final image, by column.")
      .def_readonly("epochs", &TrainResult::epochs, "Epochs done.")
      .def_property_readonly(
          "stop_reason", [](const TrainResult& self) { return to_string(self.stop_reason); },
          "epochs, converged, callback, interrupted or diverged.")
      .def_property_readonly(
          "converged", [](const TrainResult& self) { return self.stop_reason == StopReason::converged; },
          "Whether it stands still within its tolerance.")
      .def_readonly("gap", &TrainResult::gap, "How far the loss can at most be above its least value (pogm), or None.")
      .def_readonly("warnings", &TrainResult::warnings, "What makes the image doubtful, in words.")
      .def_property_readonly(
          "step", [](const TrainResult& self) { return to_string(self.step); }, "eager, captured or fused.")
      .def_readonly("step_reason", &TrainResult::step_reason, "Why that kind of step was taken.")
      .def_readonly("seconds", &TrainResult::seconds, "Of training.");

  py::class_<InterruptibleTrainer>(module, "Trainer", "Fits a model to an objective.")
      .def(py::init(&make_trainer), py::arg("model"), py::arg("objective"), py::kw_only(), py::arg("optimizer") = "adam",
           py::arg("epochs") = 500, py::arg("learning_rate") = 0.3, py::arg("tolerance") = py::none(),
           py::arg("device") = py::none(), py::arg("dtype") = py::none(), py::arg("seed") = 0, py::arg("stop_relative") = 0.0,
           py::arg("step") = "auto", py::arg("checkpoint") = py::none(), py::arg("resume") = false,
           py::arg("callback") = py::none(),
           "optimizer: adam, sgd, lbfgs, or pogm, fista and admm, which go on to the optimum of a convex objective within "
           "`tolerance` "
           "and need a model with "
           "pixel_mapping=\"nonnegative\". callback: called with an Epoch after each; False ends the fit.")
      .def("fit", &InterruptibleTrainer::fit,
           "Runs to the end. Raises DeviceError, ValueError or FileError; a fit that diverged says so in its result.");
}

}  // namespace mpol::python
