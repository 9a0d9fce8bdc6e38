# Runs at installation: the files whose place or text depends on the prefix. `source` is the source tree, `made` holds
# what was made at build.
set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# systemd looks in /usr/lib and /usr/local/lib. The unit names the program by its whole path.
file(READ ${source}/deploy/sluice.service unit)
string(REPLACE "/usr/local/bin/" "${CMAKE_INSTALL_PREFIX}/bin/" unit "${unit}")
file(MAKE_DIRECTORY ${to}/lib/systemd/system)
file(WRITE ${to}/lib/systemd/system/sluice.service "${unit}")
message(STATUS "Installing: ${to}/lib/systemd/system/sluice.service")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_PREFIX}/lib/systemd/system/sluice.service)

# Debian's zsh looks in vendor-completions of /usr, and elsewhere in site-functions.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh share/zsh/vendor-completions)
else()
  set(zsh share/zsh/site-functions)
endif()
if(EXISTS ${made}/_sluice)
  file(INSTALL ${made}/_sluice DESTINATION ${CMAKE_INSTALL_PREFIX}/${zsh})  # takes DESTDIR into account by itself
endif()
