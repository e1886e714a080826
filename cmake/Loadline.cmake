# Compile options and one helper per kind of target. A file belongs to the target of the
# folder it lies in; nothing is listed twice.

set(LOADLINE_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined")

find_program(LOADLINE_CCACHE ccache)
if(LOADLINE_CCACHE)
  # What ccache must not mind, to cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${LOADLINE_CCACHE})
endif()

# Parsing nlohmann/json.hpp is half of the time of an average file.
option(LOADLINE_PCH "Precompile the heavy headers of libraries and tests" OFF)
function(loadline_precompile target)
  if(LOADLINE_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
    endif()
  endif()
endfunction()
find_program(LOADLINE_LLD ld.lld)
if(LOADLINE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(loadline_options INTERFACE)
target_include_directories(loadline_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(loadline_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
  # Boost 1.74's awaitable.hpp uses std::exchange without including <utility> under C++20.
  -include utility
  # GCC 12 sees overlapping copies and reads out of bounds in optimized std::string code that has neither
  # (GCC bugs 105651 and 105329).
  "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-array-bounds>")
if(LOADLINE_SANITIZE)
  # Clang 14 cannot lay out what -fsanitize=function puts before coroutines.
  target_compile_options(loadline_options INTERFACE -fsanitize=${LOADLINE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(loadline_options INTERFACE -fsanitize=${LOADLINE_SANITIZE})
  if(LOADLINE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns of Asio's fences, which ThreadSanitizer does not know. Beside each is a lock, which it does.
    target_compile_options(loadline_options INTERFACE -Wno-tsan)
  endif()
endif()

# loadline_library(DEPS lib... PRECOMPILE <header>...): the current folder's *.cpp, less main.cpp
# and *_main.cpp, as library loadline_<folder>.
function(loadline_library)
  cmake_parse_arguments(ARG "" "" "DEPS;PRECOMPILE" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "main\\.cpp$")
  if(sources)
    add_library(loadline_${folder} STATIC ${sources})
    target_link_libraries(loadline_${folder} PUBLIC loadline_options ${ARG_DEPS})
    if(ARG_PRECOMPILE)
      loadline_precompile(loadline_${folder} ${ARG_PRECOMPILE})
    endif()
  else()
    add_library(loadline_${folder} INTERFACE)
    target_link_libraries(loadline_${folder} INTERFACE loadline_options ${ARG_DEPS})
  endif()
endfunction()

# loadline_program(NAME MAIN file DEPS lib...): a program in build/<preset>/bin.
function(loadline_program name)
  cmake_parse_arguments(ARG "" "MAIN" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_MAIN})
  target_link_libraries(${name} PRIVATE loadline_options ${ARG_DEPS})
  target_compile_definitions(${name} PRIVATE LOADLINE_VERSION="${PROJECT_VERSION}")
endfunction()

# loadline_embed(TARGET NAMESPACE ns FILES file...): each text file as a std::string_view
# in "<folder>/embedded.h", so that programs carry their tables and need no data folder.
function(loadline_embed target)
  cmake_parse_arguments(ARG "" "NAMESPACE" "FILES" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(out ${CMAKE_BINARY_DIR}/generated/${folder})
  add_custom_command(
    OUTPUT ${out}/embedded.h ${out}/embedded.cpp
    COMMAND python3 ${CMAKE_SOURCE_DIR}/cmake/embed.py ${ARG_NAMESPACE} ${out}/embedded ${ARG_FILES}
    DEPENDS ${ARG_FILES} ${CMAKE_SOURCE_DIR}/cmake/embed.py
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    VERBATIM)
  # A target of its own, so that the tables can be made (for clang-tidy) without building any library.
  add_custom_target(${target}_tables DEPENDS ${out}/embedded.h ${out}/embedded.cpp)
  target_sources(${target} PRIVATE ${out}/embedded.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()

# loadline_test(NAME LABEL label DEPS lib...): the *_test.cpp of the current folder as one
# GoogleTest program. LABEL unit needs nothing but itself; LABEL cluster starts a control plane.
function(loadline_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE loadline_options ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  loadline_precompile(${name} <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
  target_compile_definitions(${name} PRIVATE LOADLINE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LOADLINE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/unit/races.supp")
endfunction()
