#include <mpol_cpp/cli/program/manual_page.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/version.h>

namespace mpol::cli {
namespace {

/// A text as roff prints it: backslashes, hyphens that may be copied, and no control line by chance.
std::string roff(const std::string& text) {
  std::string result;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') result += "\\e";
    else if (c == '-') result += "\\-";
    else result += c;
    at_begin = c == '\n';
  }
  return result;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string head(const std::string& name, const std::string& description) {
  return fmt::format(".TH {} 1 \"\" \"mpol_cpp {}\" \"mpol_cpp\"\n.SH NAME\n{} \\- {}\n", upper(roff(name)), version(),
                     roff(name), roff(description));
}

std::string option_entry(const ListedOption& option) {
  auto text = std::string(".TP\n");
  if (!option.short_name.empty()) text += fmt::format("\\fB\\-{}\\fR, ", option.short_name);
  text += fmt::format("\\fB\\-\\-{}\\fR", roff(option.name));
  if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", roff(option.value));
  auto help = roff(option.help);
  if (!option.initial.empty()) help += fmt::format(" [{}]", roff(option.initial));
  return text + "\n" + help + "\n";
}

constexpr const char* exit_codes =
    ".SH EXIT STATUS\n"
    ".TP\n0\ndone\n"
    ".TP\n1\nbad data, missing file, device not there, cannot write, out of memory\n"
    ".TP\n2\nunknown option, value out of range, missing option, option without a meaning beside the others\n"
    ".TP\n3\nthe fit diverged\n"
    ".TP\n129, 130, 143\nended by a signal, after a checkpoint\n";

}  // namespace

std::string manual_page(const ListedVerb& verb) {
  auto text = head("mpol-" + verb.name, verb.help);
  text += fmt::format(".SH SYNOPSIS\n\\fBmpol {}\\fR", roff(verb.name));
  for (const auto& argument : verb.arguments) text += fmt::format(" [\\fI{}\\fR]", roff(argument.name));
  text += " [\\fIoptions\\fR]\n";
  if (!verb.arguments.empty()) text += ".SH ARGUMENTS\n";
  for (const auto& argument : verb.arguments)
    text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(argument.name), roff(argument.help));
  text += ".SH OPTIONS\nThe value in brackets is the default.\n";
  for (const auto& option : verb.options) text += option_entry(option);
  text += exit_codes;
  if (!verb.footer.empty()) text += ".SH NOTES\n.nf\n" + roff(verb.footer) + "\n.fi\n";
  return text + ".SH SEE ALSO\n\\fBmpol\\fR(1)\n";
}

std::string manual_page_of_program(const std::string& description, const std::vector<ListedVerb>& verbs) {
  auto text = head("mpol", description);
  text += ".SH SYNOPSIS\n\\fBmpol\\fR \\fIVERB\\fR [\\fIoptions\\fR]\n.SH VERBS\n";
  for (const auto& verb : verbs) text += fmt::format(".TP\n\\fBmpol\\-{}\\fR(1)\n{}\n", roff(verb.name), roff(verb.help));
  text +=
      ".SH ENVIRONMENT\n.TP\n\\fBMPOL_\\fIOPTION\\fR\nThe default of an option, in capitals and with underscores: "
      "MPOL_THREADS=4. Configuration files and the command line beat it.\n"
      ".TP\n\\fBMPOL_ISA\\fR\nportable, avx2 or avx512: the instruction set of the kernels.\n"
      ".TP\n\\fBNO_COLOR\\fR\nNo colors on the terminal.\n";
  return text + exit_codes;
}

}  // namespace mpol::cli
