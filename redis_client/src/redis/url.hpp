// Where a Redis server is.
#pragma once

#include <string>
#include <string_view>

namespace taskq::redis {

struct Address {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string path;      // of a UNIX socket; empty: host and port count
  std::string user;
  std::string password;  // empty: no AUTH
  int database = 0;
};

// Throws InvalidArgument, which never shows the password, for anything else than the forms in redis.hpp.
Address parse_url(std::string_view url);

}  // namespace taskq::redis
