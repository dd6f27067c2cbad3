# Headers that most sources share, compiled once for each set of flags: two to three seconds of
# the 9 to 17 that a batch of sources takes GCC, two of six of Clang's.
#
#   lull_precompiled(target product|tests)
#   cmake -DLULL_PRECOMPILE=OFF   shows which source relies on another's include
# Off by default where it was never tried: GCC tells some of its warnings otherwise with one.
set(lull_precompiles OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(lull_precompiles ON)
endif()
option(LULL_PRECOMPILE "Precompile the headers that most sources share" ${lull_precompiles})

set(lull_shared_headers
  <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <thread> <vector>
  <absl/container/flat_hash_map.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/time/time.h>
  <events.pb.h> <ingest.pb.h> <query.pb.h>)

# One source that is empty, as a library must have one.
function(lull_headers_library name)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled/${name}.cc CONTENT "\n" @ONLY)
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${name}.cc)
  target_link_libraries(${name} PRIVATE lull_proto lull_sanitize)
  target_precompile_headers(${name} PRIVATE ${lull_shared_headers} ${ARGN})
endfunction()

if(LULL_PRECOMPILE)
  lull_headers_library(lull_product_headers)
endif()

function(lull_precompiled target kind)
  if(TARGET lull_${kind}_headers)
    target_precompile_headers(${target} REUSE_FROM lull_${kind}_headers)
  endif()
endfunction()
