cmake_minimum_required(VERSION 3.22)
# Run at every build: writes OUTPUT, a header with the commit that is built, if that is
# another than the header says. $LULL_COMMIT names it where there is no git.
set(commit "$ENV{LULL_COMMIT}")
if(NOT commit)
  execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit unknown)
  else()
    execute_process(COMMAND git diff --quiet HEAD WORKING_DIRECTORY ${SOURCE}
      RESULT_VARIABLE modified ERROR_QUIET)
    if(modified)
      string(APPEND commit ", modified")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define LULL_COMMIT \"@commit@\"\n" @ONLY)
