# LULL_SANITIZE=address brings UBSan along; both trap on the first finding.
# liblull.so is never instrumented: it runs inside someone else's process, where
# no sanitizer runtime is loaded. Its parts are built again, instrumented, into
# the unit tests. docs/sanitizers.md says what is seen and what is not.
add_library(lull_sanitize INTERFACE)
# Without UBSan's null check: GCC compares the address of a thread_local with null by the
# flags of an addition that the linker then turns into a lea, which sets none. A read or
# write through null still crashes into ASan.
# The runtime is linked into the program: a test that preloads an allocator beside
# lull would put it ahead of a shared one. (Clang always links it in.)
if(LULL_SANITIZE STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  set(runtime -static-libasan -static-libubsan)
elseif(LULL_SANITIZE STREQUAL "thread")
  set(flags -fsanitize=thread -fno-omit-frame-pointer)
  set(runtime -static-libtsan)
elseif(NOT LULL_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LULL_SANITIZE must be empty, 'address' or 'thread'")
endif()
if(flags)
  # After CMAKE_BUILD_TYPE's. -O1 and line tables alone take half the time of -O2 -g,
  # and a report names the same lines. Clang without optimisation takes a quarter of that:
  # 5 s instead of 21 for a source of the relay's tests.
  set(level -O1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(level -O0)
    if(LULL_SANITIZE STREQUAL "address")  # as GCC says by itself
      list(APPEND level -D__SANITIZE_ADDRESS__=1)
    else()
      list(APPEND level -D__SANITIZE_THREAD__=1)
    endif()
  endif()
  target_compile_options(lull_sanitize INTERFACE ${flags} ${level} -g1)
  target_link_options(lull_sanitize INTERFACE ${flags})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Shown, no error: with the checks it is wrong in headers of the standard library.
    target_compile_options(lull_sanitize INTERFACE -Wno-error=maybe-uninitialized)
    target_link_options(lull_sanitize INTERFACE ${runtime})
  endif()
  # Into files: nobody reads the stderr of a relay worker or of a private collector.
  # tools/test shows them, and fails if there is one.
  set(reports ${CMAKE_BINARY_DIR}/sanitizer_reports)
  file(MAKE_DIRECTORY ${reports})
  file(WRITE ${CMAKE_BINARY_DIR}/sanitizer_environment.cmake "
    set(ENV{ASAN_OPTIONS} log_path=${reports}/asan)
    set(ENV{LSAN_OPTIONS} suppressions=${CMAKE_SOURCE_DIR}/tests/sanitizers/lsan.supp)
    set(ENV{UBSAN_OPTIONS} log_path=${reports}/ubsan:print_stacktrace=1)
    set(ENV{TSAN_OPTIONS} log_path=${reports}/tsan:suppressions=${CMAKE_BINARY_DIR}/tsan.supp)")
  set_property(DIRECTORY APPEND PROPERTY  # ctest runs it, and hands its variables on
    TEST_INCLUDE_FILES ${CMAKE_BINARY_DIR}/sanitizer_environment.cmake)
endif()
if(LULL_SANITIZE STREQUAL "thread")
  configure_file(${CMAKE_SOURCE_DIR}/tests/sanitizers/tsan.supp ${CMAKE_BINARY_DIR}/tsan.supp
    COPYONLY)
  if(NOT LULL_TSAN_PACKAGES)
    # One exact name each: TSan wants a pattern to match one library.
    list(TRANSFORM grpc_libraries REPLACE "(.+)" "called_from_lib:/lib\\1.so."
      OUTPUT_VARIABLE suppressions)
    list(JOIN suppressions "\n" suppressions)
    file(READ ${CMAKE_SOURCE_DIR}/tests/sanitizers/tsan_grpc.supp.in more)
    string(CONFIGURE "${more}" more @ONLY)
    file(APPEND ${CMAKE_BINARY_DIR}/tsan.supp "${more}")
  endif()
endif()
# What a fuzzer can see: without this libFuzzer is blind in our libraries.
if(LULL_BUILD_FUZZERS)
  target_compile_options(lull_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
