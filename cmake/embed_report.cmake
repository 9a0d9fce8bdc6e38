# Joins page.html, page.css and script/*.js of FOLDER and writes the page as a C++ string to OUT.cpp,
# and the joined script alone, for its tests, to OUT.js:
#
#   cmake -D FOLDER=src/cli/simulate/report -D OUT=somewhere/page_text -P embed_report.cmake

file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/page.css style)
file(GLOB scripts ${FOLDER}/script/*.js)
foreach(path ${scripts})
  file(READ ${path} text)
  string(APPEND script "${text}")
endforeach()

string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
if(page MATCHES "@STYLE@|@SCRIPT@|\\)page\"" OR NOT page MATCHES "@DOCUMENT@")
  message(FATAL_ERROR "${FOLDER}/page.html: expected @STYLE@, @SCRIPT@ and @DOCUMENT@ once each, and nowhere )page\"")
endif()

file(WRITE ${OUT}.js "${script}")
file(WRITE ${OUT}.cpp "// Written by cmake/embed_report.cmake.
#include \"cli/simulate/report/page_text.h\"

namespace sluice::cli::report {

const std::string_view kPageText = R\"page(${page})page\";

}  // namespace sluice::cli::report
")
