// What a job carries, as keyed references read it: a value of the caller's own type, or JSON text that is turned into one.
//
// JSON needs a reader for the type: include taskq/json_payload.hpp for types that nlohmann::json can read, or specialise PayloadReader.
// Thread-safety: plain values.
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "taskq/errors.hpp"

namespace taskq {

// A type that can be read from JSON has a specialisation with `static T read(std::string_view json)`; it throws what it likes.
template <class T>
struct PayloadReader;

class Payload {
 public:
  Payload() = default;

  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Payload>)
  explicit Payload(T&& value) : value_(std::forward<T>(value)) {}

  static Payload from_json(std::string text) {
    Payload payload;
    payload.json_ = std::move(text);
    payload.is_json_ = true;
    return payload;
  }

  // As a T. Throws PayloadValidationError if it is none, without showing what it is: payloads have secrets.
  template <class T>
  T as() const {
    if (const T* value = std::any_cast<T>(&value_)) return *value;
    if (!is_json_) throw PayloadValidationError("the payload is of another type");
    if constexpr (requires { PayloadReader<T>::read(std::string_view{}); }) {
      try {
        return PayloadReader<T>::read(json_);
      } catch (const std::exception&) {
        throw PayloadValidationError("the payload is not what this type is read from");
      }
    } else {
      throw PayloadValidationError("this type cannot be read from JSON: it has no PayloadReader");
    }
  }

 private:
  std::any value_;
  std::string json_;
  bool is_json_ = false;
};

}  // namespace taskq
