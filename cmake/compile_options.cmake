# Flags that every target shares, in one interface library.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# One compilation serves the program, libsluice.so and libsluice.a. What others may use is marked SLUICE_API.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(sluice_options INTERFACE)
set(warnings -Wall -Wextra -Wno-missing-field-initializers -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Werror)

# The numeric contract (docs/decisions/0002) forbids contraction; fused steps are written as std::fma.
# AVX2, FMA and F16C are the least we run on (docs/decisions/0001), so std::fma is one instruction.
set(arithmetic -ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND arithmetic -march=x86-64-v3)
endif()

# Of backend/cpu/kernels/neon.cpp, here and for a cross compiler (tests/neon). Scheduled before registers are given out,
# Q4_K's product of one row goes to the stack 291 times, and 62 times without (counted in its instructions, g++ 12).
set(neon_options -march=armv8.2-a+dotprod)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND neon_options -fno-schedule-insns)
endif()

# In the texts of CHECK files are named from the root of the sources, so a package does not say where it was built.
set(file_names -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

target_compile_options(sluice_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${warnings};${arithmetic};${file_names}>)
# Where many files are compiled as one, a constant of one file is in sight of the others.
set(one_by_one $<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>)
target_compile_options(sluice_options INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,${one_by_one}>:-Wshadow>)
target_include_directories(sluice_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# For what is compiled more often than anybody waits for it to run: tests and the command line.
set(cool_optimisation -O1)
if(SLUICE_SANITIZE)
  set(cool_optimisation -O0)
  set(sanitize -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(sluice_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${sanitize}>)
  target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_FUZZ)
  # Coverage feedback in the code under test; the main() comes with the fuzz targets alone.
  target_compile_options(sluice_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
