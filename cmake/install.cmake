# What `cmake --install` (make install) puts where, and what `cpack` makes a package of: docs/install.md. The target
# `installable` builds all of it and nothing else. Every file finds the others from where it lies, so a prefix may be moved.

if(NOT TARGET sluice_shared)  # sanitizers: nothing to install
  return()
endif()

# Completions and the manual page are made of the program's own tables.
set(made ${PROJECT_BINARY_DIR}/made)
file(MAKE_DIRECTORY ${made})
set(makes_sluice "completions bash" "completions zsh" "completions fish" "help man")
set(made_files sluice.bash _sluice sluice.fish sluice.1)
set(made_paths)
if(NOT CMAKE_CROSSCOMPILING)
  foreach(arguments file IN ZIP_LISTS makes_sluice made_files)
    add_custom_command(OUTPUT ${made}/${file} DEPENDS sluice VERBATIM
                       COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:sluice> -D ARGUMENTS=${arguments} -D OUT=${made}/${file}
                               -P ${PROJECT_SOURCE_DIR}/cmake/install/make_text.cmake)
    list(APPEND made_paths ${made}/${file})
  endforeach()
endif()
add_custom_target(installable ALL DEPENDS sluice sluice_shared sluice_static ${made_paths})

install(TARGETS sluice)
install(TARGETS sluice_shared sluice_static EXPORT sluiceTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Not CMAKE_INSTALL_DATADIR: src/chat/find_model.cpp looks here, beside bin and lib.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION share/sluice FILES_MATCHING PATTERN "*.gguf")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/deploy DESTINATION ${CMAKE_INSTALL_DOCDIR}
        USE_SOURCE_PERMISSIONS)
if(made_paths)
  install(FILES ${made}/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${made}/sluice.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sluice)
  install(FILES ${made}/sluice.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# What depends on the prefix is known only when it is installed.
install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(made \"${made}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install/by_prefix.cmake)

# The program and the shared library have code of others inside, whose licences want to be shown.
foreach(package libedit-dev libncurses-dev libbsd-dev libmd-dev libpcre2-dev libboost1.74-dev libcli11-dev nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${package}/copyright)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}/included RENAME ${package})
  endif()
endforeach()

# pkg-config and find_package().
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(${PROJECT_SOURCE_DIR}/cmake/install/sluice.pc.in ${made}/sluice.pc @ONLY)
install(FILES ${made}/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/install/sluice-config.cmake.in ${made}/sluice-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${made}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/sluice-config.cmake ${made}/sluice-config-version.cmake DESTINATION ${package_folder})
install(EXPORT sluiceTargets NAMESPACE sluice:: DESTINATION ${package_folder} FILE sluice-targets.cmake)

include(cmake/package.cmake)
