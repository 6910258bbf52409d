# What `cmake --install` puts where: the library, its headers and the core's, a CMake package, a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/taskq-ratelimit)
install(TARGETS taskq_ratelimit EXPORT taskq-ratelimit-targets)
install(EXPORT taskq-ratelimit-targets NAMESPACE taskq:: DESTINATION ${package_dir})
install(DIRECTORY include/taskq ../include/taskq_ratelimit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")

configure_package_config_file(cmake/taskq-ratelimit-config.cmake.in taskq-ratelimit-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(taskq-ratelimit-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/taskq-ratelimit-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/taskq-ratelimit-config-version.cmake DESTINATION ${package_dir})

configure_file(cmake/taskq-ratelimit.pc.in taskq-ratelimit.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/taskq-ratelimit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
