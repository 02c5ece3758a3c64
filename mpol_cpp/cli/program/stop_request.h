#pragma once

namespace mpol::cli {

/// SIGINT, SIGTERM and SIGHUP as a request: the first is noted and the program ends where it is whole; a second one ends it
/// at once. One that was ignored when the program began (nohup, a background job) stays so. A write beyond the file size
/// limit becomes an error of that write.
void watch_signals();

/// While one lives, also a second signal waits: files are getting their names.
class HoldStop {
 public:
  HoldStop();
  ~HoldStop();
  HoldStop(const HoldStop&) = delete;
  HoldStop& operator=(const HoldStop&) = delete;
};

/// The signal that asked for an end, 0 when none has.
int stop_requested();

/// @throws Interrupted when an end has been asked for
void stop_if_requested();

}  // namespace mpol::cli
