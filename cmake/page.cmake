# sluice_embed_page(<target>): the bundle of web/ as bytes in the target. Built by node where there is one; otherwise, or
# with -DSLUICE_PAGE=OFF, the page is one that says how to have it.

option(SLUICE_PAGE "Build the server's web page (needs node and npm, and their registry the first time)" ON)

function(sluice_embed_page target)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
  set(page ${PROJECT_BINARY_DIR}/web)
  find_program(NODE NAMES node nodejs)
  find_program(NPM npm)
  if(SLUICE_PAGE AND NODE AND NPM)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/* ${web}/without_node/*)
    add_custom_command(OUTPUT ${page}/built COMMAND ${NODE} ${web}/build.mjs ${page}
                       DEPENDS ${sources} ${web}/build.mjs ${web}/npm_install.mjs ${web}/tsconfig.json
                       ${web}/package.json ${web}/package-lock.json
                       COMMENT "Building the page" VERBATIM)
    set(folder ${page}/dist)
    set(built ${page}/built)
  else()
    message(STATUS "The server is built without its page (it needs node, npm and SLUICE_PAGE=ON)")
    set(folder ${web}/without_node)
    file(GLOB built CONFIGURE_DEPENDS ${folder}/*)
  endif()
  add_custom_command(OUTPUT ${page}/page_files.cpp
                     COMMAND ${CMAKE_COMMAND} -D FOLDER=${folder} -D CSP=${web}/csp.txt -D OUT=${page}/page_files.cpp -P ${script}
                     DEPENDS ${built} ${web}/csp.txt ${script} VERBATIM)
  target_sources(${target} PRIVATE ${page}/page_files.cpp)
  set_source_files_properties(${page}/page_files.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
