# LULL_SANITIZE=address brings UBSan along; both trap on the first finding.
# liblull.so is never instrumented: it runs inside someone else's process, where
# no sanitizer runtime is loaded. Its parts are built again, instrumented, into
# the unit tests.
add_library(lull_sanitize INTERFACE)
if(LULL_SANITIZE STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(LULL_SANITIZE STREQUAL "thread")
  set(flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT LULL_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LULL_SANITIZE must be empty, 'address' or 'thread'")
endif()
if(flags)
  target_compile_options(lull_sanitize INTERFACE ${flags})
  target_link_options(lull_sanitize INTERFACE ${flags})
endif()
# What a fuzzer can see: without this libFuzzer is blind in our libraries.
if(LULL_BUILD_FUZZERS)
  target_compile_options(lull_sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
