#include <mpol_cpp/cli/output/result_files.h>

#include <map>

namespace mpol::cli {
namespace {

/// The verbs by their files.
std::map<std::string, std::string>& noted_results() {
  static std::map<std::string, std::string> verbs;
  return verbs;
}

}  // namespace

void note_results(const std::vector<Verb>& verbs) {
  noted_results().clear();
  for (const auto& verb : verbs) {
    for (const auto& name : verb.results) noted_results().emplace(name, verb.app->get_name());
  }
}

std::string verb_of_result(const std::string& name) {
  const auto found = noted_results().find(name);
  return found == noted_results().end() ? std::string() : found->second;
}

}  // namespace mpol::cli
