# Writes OUT, a C++ file that holds every file of FOLDER: the assembler includes the bytes, so that nothing is parsed.
# A file NAME.gz beside NAME is NAME as browsers may take it.
#
#   cmake -D FOLDER=web/dist -D CSP=web/csp.txt -D OUT=page_files.cpp -P embed_page.cmake

cmake_minimum_required(VERSION 3.25)

set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_txt "text/plain; charset=utf-8")
set(type_woff2 "font/woff2")

file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*)
list(FILTER names EXCLUDE REGEX "\\.gz$")
if(NOT "index.html" IN_LIST names)
  message(FATAL_ERROR "${FOLDER} holds no index.html: it is not a page")
endif()

set(n 0)
# embed(<path>): declares page_<n>_begin and page_<n>_end, and counts on; `view` names the bytes.
macro(embed path)
  string(APPEND bytes "asm(\".pushsection .rodata\\npage_${n}_begin: .incbin \\\"${path}\\\"\\npage_${n}_end:\\n.popsection\");
extern const char page_${n}_begin[] asm(\"page_${n}_begin\");
extern const char page_${n}_end[] asm(\"page_${n}_end\");
")
  set(view "between(page_${n}_begin, page_${n}_end)")
  math(EXPR n "${n} + 1")
endmacro()

foreach(name ${names})
  string(REGEX MATCH "[^.]*$" ending ${name})
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${FOLDER}/${name}: no content type is known for .${ending}; add it to embed_page.cmake")
  endif()
  file(SHA256 ${FOLDER}/${name} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  embed(${FOLDER}/${name})
  set(plain "${view}")
  set(gzip "{}")
  if(EXISTS ${FOLDER}/${name}.gz)
    embed(${FOLDER}/${name}.gz)
    set(gzip "${view}")
  endif()
  string(APPEND table "      {\"/${name}\", {\"${type_${ending}}\", ${plain}, ${gzip}, \"\\\"${hash}\\\"\"}},\n")
endforeach()

file(READ ${CSP} csp)
string(STRIP "${csp}" csp)
file(WRITE ${OUT} "// Written by cmake/embed_page.cmake.
#include \"server/page_files.h\"

${bytes}
namespace sluice::server {

std::span<const PageFile> page_files() {
  const auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  static const PageFile files[] = {
${table}  };
  return files;
}

std::string_view page_csp() { return \"${csp}\"; }

}  // namespace sluice::server
")
