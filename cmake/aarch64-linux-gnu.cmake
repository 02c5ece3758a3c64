# Cross-compiles for 64-bit ARM with Debian's g++-aarch64-linux-gnu; what was built runs here by qemu-user. scripts/check_aarch64
# uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Its libraries lie apart; packages that are headers alone (Catch2, nlohmann-json) are the same for every processor.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
