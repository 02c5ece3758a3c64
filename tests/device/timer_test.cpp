#include "catch.h"

#include <chrono>
#include <thread>

#include <mpol_cpp/device/device_timer.h>

using mpol::DeviceTimer;

namespace {

void pass(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace

TEST_CASE("a timer on the CPU counts what passes between start and stop, and nothing after", "[device][quick]") {
  using namespace std::chrono_literals;
  const auto before = std::chrono::steady_clock::now();
  DeviceTimer timer(torch::kCPU);
  pass(20ms);
  timer.stop();
  const double between = timer.seconds();
  pass(20ms);
  CHECK(timer.seconds() == between);
  CHECK(between >= 0.02);
  const std::chrono::duration<double> around = std::chrono::steady_clock::now() - before;
  CHECK(between <= around.count() - 0.02);
}

TEST_CASE("a timer that was not stopped ends when it is asked, and starts again", "[device][quick]") {
  using namespace std::chrono_literals;
  DeviceTimer timer(torch::kCPU);
  pass(10ms);
  const double first = timer.seconds();
  CHECK(first >= 0.01);
  const auto before = std::chrono::steady_clock::now();
  timer.start();
  const double second = timer.seconds();
  CHECK(second <= std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
}
