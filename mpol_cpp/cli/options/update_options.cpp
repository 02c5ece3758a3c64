#include <mpol_cpp/cli/options/update_options.h>

#include <sstream>
#include <vector>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

LearningRateSchedule parse_schedule(const std::string& text, std::int64_t epochs) {
  constexpr const char* option = "schedule";
  const auto parts = split(text, ':');
  const auto kind = parts.empty() ? std::string() : parts.front();
  if (kind == "constant" && parts.size() == 1) return {};
  if (kind == "exponential" && parts.size() == 2) {
    return LearningRateSchedule::exponential(parse_number(option, parts[1], Range::between(1e-9, 1)));
  }
  if (kind == "step" && parts.size() == 3) {
    return LearningRateSchedule::step(parse_integer(option, parts[1], Range::between(1, 1e15)),
                                      parse_number(option, parts[2], Range::between(1e-9, 1)));
  }
  if (kind == "cosine" && parts.size() <= 2) {
    return LearningRateSchedule::cosine(epochs, parts.size() == 2 ? parse_number(option, parts[1], Range::between(0, 1)) : 0.0);
  }
  throw UsageError(error_text("--schedule", text, "is no schedule",
                              "give constant, exponential:FACTOR, step:EPOCHS:FACTOR or cosine[:LAST_FACTOR]"));
}

Betas parse_betas(const std::string& text) {
  const auto parts = split(text, ',');
  if (parts.size() != 2) throw UsageError(error_text("--betas", text, "must be two numbers", "give them as 0.9,0.999"));
  constexpr double largest = 0.999999;
  return {parse_number("betas", parts[0], Range::between(0, largest)),
          parse_number("betas", parts[1], Range::between(0, largest))};
}

}  // namespace

std::string UpdateOptions::first_given() const {
  if (learning_rate) return "--learning-rate";
  if (!schedule.empty()) return "--schedule";
  if (momentum) return "--momentum";
  if (!betas.empty()) return "--betas";
  return weight_decay ? "--weight-decay" : std::string();
}

void declare(OptionSet& options, UpdateOptions& update) {
  const auto result = Record::result;
  options.number("--learning-rate", update.learning_rate, Range::positive(), "RATE", "Of adam, sgd and lbfgs; default: 0.3",
                 result);
  options.text(
      "--schedule", update.schedule, "SCHEDULE",
      "What the learning rate is multiplied by: exponential:FACTOR in each epoch, step:EPOCHS:FACTOR, or cosine[:LAST], a "
      "half wave from 1 to LAST over --epochs; default: constant",
      result);
  options.number("--momentum", update.momentum, Range::between(0, 0.999999), "PART",
                 "Of sgd: of each step kept in the next; default: 0", result);
  options.text("--betas", update.betas, "FIRST,SECOND", "Of adam: what its moments keep; default: 0.9,0.999", result);
  options.number("--weight-decay", update.weight_decay, Range::not_negative(), "RATE",
                 "Of adam and sgd: draws base pixels (not the image) to 0; default: 0", result);
}

void apply(const UpdateOptions& update, std::int64_t epochs, TrainOptions& options) {
  if (update.learning_rate) options.learning_rate(*update.learning_rate);
  if (!update.schedule.empty()) options.schedule(parse_schedule(update.schedule, epochs));
  if (update.momentum) options.momentum(*update.momentum);
  if (!update.betas.empty()) options.betas(parse_betas(update.betas));
  if (update.weight_decay) options.weight_decay(*update.weight_decay);
}

}  // namespace mpol::cli
