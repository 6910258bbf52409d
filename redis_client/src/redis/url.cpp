#include "url.hpp"

#include <charconv>
#include <optional>

#include "taskq/errors.hpp"

namespace taskq::redis {

namespace {

[[noreturn]] void refuse(const char* what) { throw InvalidArgument(std::string("redis url: ") + what); }

int number(std::string_view text, int low, int high, const char* what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) refuse(what);
  return value;
}

std::optional<int> digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? digit(text[i + 2]) : std::nullopt;
    if (!high || !low) refuse("% must be followed by two hexadecimal digits");
    plain += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return plain;
}

// Takes what stands before the last '@' off the rest.
void take_credentials(std::string_view& rest, std::string_view until, Address& address) {
  const std::size_t end = rest.substr(0, rest.find_first_of(until)).rfind('@');
  if (end == std::string_view::npos) return;
  const std::string_view all = rest.substr(0, end);
  const std::size_t colon = all.find(':');
  if (colon == std::string_view::npos) refuse("credentials must be written user:password@ or :password@");
  address.user = unescaped(all.substr(0, colon));
  address.password = unescaped(all.substr(colon + 1));
  rest.remove_prefix(end + 1);
}

void parse_socket(std::string_view rest, Address& address) {
  take_credentials(rest, "/", address);
  const std::size_t question = rest.find('?');
  if (question != std::string_view::npos) {
    const std::string_view query = rest.substr(question + 1);
    if (!query.starts_with("db=")) refuse("the only parameter of a socket is ?db=");
    address.database = number(query.substr(3), 0, 1'000'000, "the database must be a number");
  }
  address.path = unescaped(rest.substr(0, question));
  if (!address.path.starts_with('/')) refuse("the path of a socket must begin with /");
}

void parse_server(std::string_view rest, Address& address) {
  take_credentials(rest, "/", address);
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    address.database = number(rest.substr(slash + 1), 0, 1'000'000, "the database must be a number");
  }
  std::string_view host = rest.substr(0, slash);
  const std::size_t closing = host.starts_with('[') ? host.find(']') : 0;
  if (closing == std::string_view::npos) refuse("an IPv6 address must end with ]");
  const std::size_t colon = host.find(':', closing);
  if (colon != std::string_view::npos) {
    address.port = number(host.substr(colon + 1), 1, 65535, "the port must be a number up to 65535");
    host = host.substr(0, colon);
  }
  if (closing > 0) host = host.substr(1, closing - 1);
  if (!host.empty()) address.host = std::string(host);
}

}  // namespace

Address parse_url(std::string_view url) {
  Address address;
  constexpr std::string_view server = "redis://", socket = "unix://";
  if (url.starts_with(server)) {
    parse_server(url.substr(server.size()), address);
  } else if (url.starts_with(socket)) {
    parse_socket(url.substr(socket.size()), address);
  } else {
    refuse("it must begin with redis:// or unix://");
  }
  return address;
}

}  // namespace taskq::redis
