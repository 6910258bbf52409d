// The version, once; a test compares it with the control file and META.json.
#pragma once

namespace taskq::ratelimit {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace taskq::ratelimit
