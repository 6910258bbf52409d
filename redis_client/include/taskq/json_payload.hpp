// Reads payloads with nlohmann-json: every type that has a from_json. Header only; include it where payloads are JSON text.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "taskq/payload.hpp"

namespace taskq {

template <class T>
  requires requires(const nlohmann::json& json) { json.get<T>(); }
struct PayloadReader<T> {
  static T read(std::string_view json) { return nlohmann::json::parse(json).template get<T>(); }
};

}  // namespace taskq
