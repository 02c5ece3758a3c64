#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace mpol::testing {

/// A port that nothing listens at, below those that the system gives to whoever connects: a rank that looks for a server that is
/// not there yet must not find itself.
inline int free_port() {
  constexpr int lowest = 12000, count = 20000;
  static int tries = 0;
  for (;;) {
    const int port = lowest + (::getpid() * 31 + 7 * tries++) % count;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket);
    if (bound) return port;
    if (tries > count) throw std::runtime_error("no free port");
  }
}

}  // namespace mpol::testing
