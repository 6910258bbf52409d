# The Redis backend. Its Lua scripts become one header.
find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
file(GLOB lua_files CONFIGURE_DEPENDS lua/*.lua)
add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/lua/lua_sources.hpp
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/lua -DHEADER=${CMAKE_CURRENT_BINARY_DIR}/lua/lua_sources.hpp
          -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed_lua.cmake
  DEPENDS ${lua_files} cmake/embed_lua.cmake)
add_custom_target(taskq_lua_sources DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/lua/lua_sources.hpp)
set(redis_sources
  src/redis/change.cpp
  src/redis/codec.cpp
  src/redis/connection.cpp
  src/redis/redis_backend.cpp
  src/redis/scripts.cpp
  src/redis/url.cpp)
add_library(taskq_ratelimit_redis ${redis_sources})
add_dependencies(taskq_ratelimit_redis taskq_lua_sources)
add_library(taskq::ratelimit_redis ALIAS taskq_ratelimit_redis)
target_include_directories(taskq_ratelimit_redis PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/lua)
target_link_libraries(taskq_ratelimit_redis PUBLIC taskq_ratelimit PRIVATE PkgConfig::HIREDIS)
set_target_properties(taskq_ratelimit_redis PROPERTIES EXPORT_NAME ratelimit_redis VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
