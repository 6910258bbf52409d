// Addresses of Redis servers.
#include <catch2/catch.hpp>

#include "taskq/errors.hpp"
#include "url.hpp"

namespace taskq::redis {

TEST_CASE("a url says where the server is") {
  CHECK(parse_url("redis://").host == "127.0.0.1");
  CHECK(parse_url("redis://example:7000").port == 7000);
  CHECK(parse_url("redis://example:7000/3").database == 3);
  const Address full = parse_url("redis://me:p%40ss%2Fword@[::1]:7001/2");
  CHECK(full.user == "me");
  CHECK(full.password == "p@ss/word");
  CHECK(full.host == "::1");
  CHECK(full.port == 7001);
  CHECK(parse_url("redis://:secret@example").password == "secret");
  const Address socket = parse_url("unix://:secret@/run/redis.sock?db=4");
  CHECK(socket.path == "/run/redis.sock");
  CHECK(socket.password == "secret");
  CHECK(socket.database == 4);
}

TEST_CASE("a url that cannot be right is refused, and the password is not shown") {
  for (const char* url : {"", "http://x", "redis://x:0", "redis://x:70000", "redis://x:1x", "redis://x/y", "redis://me@x", "redis://:%4@x", "redis://[::1", "unix://run/x",
                          "unix:///run/x?port=1"}) {
    INFO(url);
    CHECK_THROWS_AS(parse_url(url), InvalidArgument);
  }
  try {
    parse_url("redis://:secret@x:99999999");
    FAIL("accepted");
  } catch (const InvalidArgument& error) {
    CHECK(std::string(error.what()).find("secret") == std::string::npos);
  }
}

}  // namespace taskq::redis
