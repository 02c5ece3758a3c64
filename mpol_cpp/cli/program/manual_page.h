#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/program/option_list.h>

namespace mpol::cli {

/// The manual page of a verb, for man(1): mpol-VERB.
std::string manual_page(const ListedVerb& verb);

/// That of the program: its verbs, the files and exit codes that they share.
std::string manual_page_of_program(const std::string& description, const std::vector<ListedVerb>& verbs);

}  // namespace mpol::cli
