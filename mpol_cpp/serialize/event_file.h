#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mpol {

/// CRC-32C (Castagnoli) of bytes.
std::uint32_t crc32c(std::string_view bytes);

/// A file of events that TensorBoard shows, which grows while a run goes on: records of length, CRC of it, an `Event` of
/// TensorFlow's protocol buffers, CRC of it. It is written to its end after each call, so that who watches sees all of it; a
/// process that is killed leaves at most one record that is not whole, which readers pass over.
class EventFile {
 public:
  /// Creates `events.out.tfevents.TIME.NAME` in a folder, which is made.
  /// @param name  what distinguishes files of the same second  @throws FileError
  EventFile(const std::filesystem::path& folder, const std::string& name);

  /// Says that what follows begins at a step: what earlier files of the folder say from there on no longer holds.
  void begin(std::int64_t step);
  /// Values by their names, "loss/total", at a step. @throws FileError
  void add_scalars(std::int64_t step, const std::vector<std::pair<std::string, double>>& values);

  const std::filesystem::path& path() const { return path_; }  ///< of the file

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
};

/// True for the names of such files.
bool is_event_file(const std::string& name);

}  // namespace mpol
