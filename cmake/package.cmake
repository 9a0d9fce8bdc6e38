# `cpack -G DEB` in the build folder: one .deb of all that is installed, below /usr. tools/test-deb tries it in a bare
# Debian.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sluice)
set(CPACK_PACKAGE_VENDOR sluice)
set(CPACK_PACKAGE_CONTACT "sluice developers <sluice@localhost>" CACHE STRING "Who answers for packages, as in Maintainer:")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Mixture-of-Experts language models larger than the GPU's memory")
set(CPACK_PACKAGE_DESCRIPTION "sluice runs language models from GGUF files: chats on the command line, serves\n\
the APIs of OpenAI, Anthropic and Ollama, and is a library for C, C++ and what\n\
can call C. Two small demo models are included.")
set(CPACK_SET_DESTDIR ON)  # so that install scripts see /usr as their prefix
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_MONOLITHIC_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Loaded only where a model is fetched (src/hub/curl_library.cpp), so that dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4, ca-certificates")
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # and so ldconfig runs after installation
else()  # as it says on Debian 12
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libgcc-s1 (>= 3.0), libpcre2-8-0 (>= 10.32), libstdc++6 (>= 12)")
endif()
include(CPack)
