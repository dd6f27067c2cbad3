# lull_test(name LABEL unit|integration|... SOURCES ... LIBRARIES ... [UNTIMED] [TIMED CASES]
#           [WAITS])
#   one GoogleTest executable; every test case becomes a ctest case. TIMED: the cases (as
#   GoogleTest's filter names them) that compare times in an executable that is UNTIMED else.
# lull_script_test(name LABEL ... COMMAND ... [UNTIMED [AGAIN] [WAITS] | ONCE | LANE 1 | LANE 2])
#   any command; exit status 0 passes. ONCE: it runs alone, and is believed at once. LANE: it
#   mostly waits, and runs beside one of the other lane at first; if it is tried again, it is
#   alone (tests/again.py). Those come late: a negative COST.
# An integration test that is such a script and runs alone, or has AGAIN, is run up to twice
# more while a comparison of numbers, and nothing else, fails (tests/again.py). In a build with
# a sanitizer, where the start of a process takes longer than most cases, each unit test executable
# runs in four parts, not case by case.
# A COST (ctest's property) in seconds lets a long one begin early, also in a fresh build.
# Unit tests run side by side, and so do those that compare no times, or have seconds to
# spare where they do (UNTIMED); all others run alone.
# WAITS: it has a processor for less than half of its time. Of the parts of a processor that
# tools/test has, three each, it takes one; others take two, and of a LANE three.
# Labels: unit and integration make the default tier; slow and bench
# are asked for by name (tools/test --help).
find_package(GTest REQUIRED)
include(GoogleTest)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# What the unit tier needs, for builds that run nothing else; and that of preload/ and
# daemon/ alone.
add_custom_target(unit_tests)
add_custom_target(core_tests)

# The plain build's tests are compiled by Clang without optimisation, where it is there. What
# they test is GCC's as ever. Benches are GCC's, and so are tests of the simulated device, which is
# in them: it keeps time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT LULL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  find_program(LULL_CLANG clang++)
endif()
# It takes the newest standard library that it finds: that has to be the compiler's own.
if(LULL_CLANG)
  file(WRITE ${CMAKE_BINARY_DIR}/standard_library.cc "#include <string>\n_GLIBCXX_RELEASE\n")
  foreach(compiler CMAKE_CXX_COMPILER LULL_CLANG)
    execute_process(COMMAND ${${compiler}} -E -P ${CMAKE_BINARY_DIR}/standard_library.cc
      OUTPUT_VARIABLE ${compiler}_library RESULT_VARIABLE failed ERROR_QUIET)
    if(failed)
      set(${compiler}_library "none of ${compiler}")
    endif()
    string(REGEX REPLACE ".*\n([^\n]+)\n*$" "\\1" ${compiler}_library "${${compiler}_library}")
  endforeach()
  if(NOT CMAKE_CXX_COMPILER_library STREQUAL LULL_CLANG_library)
    message(STATUS "tests are not by ${LULL_CLANG}: its standard library is another")
    set(LULL_CLANG OFF)
  endif()
endif()
function(lull_compiles_as_test target)
  if(LULL_CLANG)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${PROJECT_SOURCE_DIR}/cmake/compile_by;${LULL_CLANG};${CMAKE_CXX_COMPILER};${CMAKE_CXX_COMPILER_LAUNCHER}")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  else()
    lull_compiles_quickly(${target})
  endif()
endfunction()

if(LULL_PRECOMPILE)
  lull_headers_library(lull_tests_headers <gmock/gmock.h> <gtest/gtest.h>)
  lull_compiles_as_test(lull_tests_headers)
  target_link_libraries(lull_tests_headers PRIVATE GTest::gmock)
endif()

# lull_test_support(target): a library of what tests share, after its add_library. Not for what
# a bench links: of an inline function the linker keeps one, which may be this one.
function(lull_test_support target)
  lull_warnings(${target})
  lull_in_bulk(${target})
  lull_precompiled(${target} tests)
  lull_compiles_as_test(${target})
endfunction()

# The tests alone: a large one links in 0.4 s of processor time in place of 1.3. What is
# installed is linked as everything on the machine is.
include(CheckLinkerFlag)
if(NOT CMAKE_CROSSCOMPILING)
  check_linker_flag(CXX -fuse-ld=lld LULL_HAS_LLD)
endif()

function(lull_test name)
  cmake_parse_arguments(ARG "UNTIMED;WAITS" "LABEL;TIMEOUT;TIMED" "SOURCES;LIBRARIES;ENVIRONMENT"
    ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  lull_warnings(${name})
  lull_in_bulk(${name})
  if(LULL_HAS_LLD)
    target_link_options(${name} PRIVATE -fuse-ld=lld)
  endif()
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/(daemon|cli)")
    lull_precompiled(${name} tests)
    lull_compiles_as_test(${name})
  elseif(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/(sim|bench)$")
    lull_compiles_as_test(${name})
  else()
    lull_compiles_quickly(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main lull_sanitize)
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
    set(part "${name}_")  # tools/test finds those of the core by their dot, as all cases
    if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/(cli|sim)$")
      add_dependencies(core_tests ${name})
      set(part "${name}.")
    endif()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(LULL_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  set(alone TRUE)
  if(ARG_UNTIMED OR ARG_LABEL STREQUAL "unit")
    set(alone FALSE)
  endif()
  set(parts 2)
  if(ARG_WAITS)
    set(parts 1)
  endif()
  if(LULL_SANITIZE AND ARG_LABEL STREQUAL "unit")
    if(LULL_SANITIZE STREQUAL "thread")  # those that share something between threads mostly wait
      set(parts 1)
    endif()
    foreach(index RANGE 3)
      add_test(NAME ${part}${index} COMMAND ${name})
      set_tests_properties(${part}${index} PROPERTIES LABELS unit TIMEOUT 900 PROCESSORS ${parts}
        ENVIRONMENT "${ARG_ENVIRONMENT};GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  endif()
  set(others)
  if(ARG_TIMED)
    set(others TEST_FILTER "-${ARG_TIMED}")
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_FILTER "${ARG_TIMED}"
      TEST_LIST ${name}_TIMED
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL TRUE
        ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 ${others}
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${alone}
      PROCESSORS ${parts} ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

function(lull_script_test name)
  # What is said of one ctest takes for the other, too: of when they run, and of their labels.
  get_property(names GLOBAL PROPERTY lull_script_tests)
  if(name IN_LIST names)
    message(FATAL_ERROR "two tests are called ${name}")
  endif()
  set_property(GLOBAL APPEND PROPERTY lull_script_tests ${name})
  cmake_parse_arguments(ARG "UNTIMED;ONCE;AGAIN;WAITS" "LABEL;TIMEOUT;LANE" "COMMAND;ENVIRONMENT"
    ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(LULL_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  set(alone TRUE)
  if(ARG_UNTIMED OR ARG_LABEL STREQUAL "unit")
    set(alone FALSE)
  endif()
  set(parts 2)
  if(ARG_WAITS)
    set(parts 1)
  endif()
  set(beside)
  if(ARG_LANE)
    set(parts 3)
    set(beside --beside ${CMAKE_BINARY_DIR}/lanes.lock)
  endif()
  if(ARG_AGAIN OR (alone AND NOT ARG_ONCE AND ARG_LABEL STREQUAL "integration"))
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
    list(PREPEND ARG_COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/again.py
      ${beside} ${CMAKE_BINARY_DIR}/failed_at_first.log)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    RUN_SERIAL ${alone} PROCESSORS ${parts} ENVIRONMENT "${ARG_ENVIRONMENT}")
  if(ARG_LANE)
    set_tests_properties(${name} PROPERTIES
      RUN_SERIAL FALSE RESOURCE_LOCK lane${ARG_LANE} COST -1)
  endif()
endfunction()
