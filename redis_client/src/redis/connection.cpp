#include "connection.hpp"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "taskq/errors.hpp"

namespace taskq::redis {

namespace {

timeval as_timeval(Duration duration) {
  return {.tv_sec = static_cast<time_t>(duration.count() / 1'000'000), .tv_usec = static_cast<suseconds_t>(duration.count() % 1'000'000)};
}

redisContext* connected(const Address& address, Duration timeout) {
  if (!address.path.empty()) return redisConnectUnixWithTimeout(address.path.c_str(), as_timeval(timeout));
  return redisConnectWithTimeout(address.host.c_str(), address.port, as_timeval(timeout));
}

}  // namespace

Connection::Connection(const Address& address, Duration connect_timeout, Duration command_timeout)
    : context_(connected(address, connect_timeout)) {
  if (!context_) throw ConnectionError("redis: no memory for a connection");
  if (context_->err != 0) fail("connecting");
  if (redisSetTimeout(context_.get(), as_timeval(command_timeout)) != REDIS_OK) fail("setting the time-out");
  log_in(address);
}

void Connection::log_in(const Address& address) {
  std::vector<std::string_view> words{"AUTH"};
  if (!address.user.empty()) words.push_back(address.user);
  words.push_back(address.password);
  if (!address.password.empty()) check(*ask(words));
  const std::string database = std::to_string(address.database);
  const std::string_view select[] = {"SELECT", database};
  if (address.database != 0) check(*ask(select));
}

void Connection::fail(const char* doing) const {
  const bool late = context_->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ETIMEDOUT);
  const std::string text = std::string("redis: ") + doing + ": " + context_->errstr;
  if (late || std::strstr(context_->errstr, "timed out") != nullptr) throw Timeout(text);
  throw ConnectionError(text);
}

Reply Connection::ask(std::span<const std::string_view> words) {
  std::vector<const char*> texts(words.size());
  std::vector<std::size_t> sizes(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    texts[i] = words[i].data();
    sizes[i] = words[i].size();
  }
  errno = 0;
  Reply reply(static_cast<redisReply*>(redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
  if (!reply) fail("waiting for an answer");
  return reply;
}

void check(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) throw BackendError("redis: " + std::string(reply.str, reply.len));
}

Pool::Pool(Address address, Duration connect_timeout, Duration command_timeout, std::size_t idle)
    : address_(std::move(address)), connect_timeout_(connect_timeout), command_timeout_(command_timeout), most_idle_(idle), process_(getpid()) {}

// The last one that was given back: it is the least likely to have been closed by the server. One that has something to read while nobody
// asked was closed, or answers late: it goes.
std::unique_ptr<Connection> Pool::take() {
  for (;;) {
    std::unique_ptr<Connection> connection;
    {
      const std::lock_guard lock(mutex_);
      if (process_ != getpid()) {
        for (auto& inherited : idle_) static_cast<void>(inherited.release());  // they are the parent's
        idle_.clear();
        process_ = getpid();
      }
      if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!connection) return std::make_unique<Connection>(address_, connect_timeout_, command_timeout_);
    if (connection->is_quiet()) return connection;
  }
}

void Pool::give_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (process_ == getpid() && idle_.size() < most_idle_) idle_.push_back(std::move(connection));
}

bool Connection::is_quiet() const {
  pollfd descriptor{.fd = context_->fd, .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) == 0;
}

}  // namespace taskq::redis
