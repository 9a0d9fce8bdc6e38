# libsluice.so and libsluice.a: all libraries up to c_api as one each, of the objects that the program is made of too.
# Neither is needed for the program, so `make run` does not link them. Programs with sanitizers in them are for testing;
# their objects make no library for others.

if(SLUICE_SANITIZE OR SLUICE_FUZZ)
  return()
endif()

set(parts base quant gguf text sampler policy backend_cpu backend_ram ${accelerator_library} model model_file engine chat c_api)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:sluice_\\1>" OUTPUT_VARIABLE objects)

# libsluice.so.0 of versions 0.x; the number grows when programs have to be compiled anew.
set(so_version ${PROJECT_VERSION_MAJOR})
set(symbols ${PROJECT_SOURCE_DIR}/src/libsluice.map)
add_library(sluice_shared SHARED ${objects} cli/cpu_check.cpp)
set_target_properties(sluice_shared PROPERTIES OUTPUT_NAME sluice EXPORT_NAME sluice LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${so_version} LINK_DEPENDS ${symbols})
target_link_options(sluice_shared PRIVATE -Wl,--version-script=${symbols} -Wl,-z,defs)

add_library(sluice_static STATIC ${objects})
set_target_properties(sluice_static PROPERTIES OUTPUT_NAME sluice LINKER_LANGUAGE CXX)

# What programs need beside it: of the shared library nothing, which has it all inside or names it itself. PCRE2 is
# looked for by name, where the program is linked.
foreach(library sluice_shared sluice_static)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${library} INTERFACE cxx_std_20)
endforeach()
target_link_libraries(sluice_shared PRIVATE Threads::Threads pcre2-8 ${CMAKE_DL_LIBS})
target_link_libraries(sluice_static INTERFACE Threads::Threads pcre2-8 ${CMAKE_DL_LIBS})
set(libs_private "-lpcre2-8 -lstdc++ -lm -lpthread -ldl")
if(SLUICE_CUDA)
  target_link_libraries(sluice_shared PRIVATE CUDA::cudart_static)
  target_link_libraries(sluice_static INTERFACE CUDA::cudart_static)
  string(PREPEND libs_private "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt ")  # out of the linker's sight
  set(find_cuda "find_dependency(CUDAToolkit)" PARENT_SCOPE)
endif()
set(libs_private "${libs_private}" PARENT_SCOPE)
