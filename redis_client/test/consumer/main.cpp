#include "taskq/ratelimit.hpp"

int main() {
  taskq::TokenBucket bucket("api", {.capacity = 1});
  return bucket.acquire().allowed() && !bucket.acquire().allowed() ? 0 : 1;
}
