#pragma once

namespace mpol::cli {

/// SIGINT and SIGTERM as a request: the first is noted and the program ends where it is whole; a second one ends it at
/// once. A write beyond the file size limit becomes an error of that write.
void watch_signals();

/// The signal that asked for an end, 0 when none has.
int stop_requested();

/// @throws Interrupted when an end has been asked for
void stop_if_requested();

}  // namespace mpol::cli
