# Headers that most sources share, compiled once for each set of flags: 3 s of the 9 to 17 s
# that a batch of sources takes GCC, two of six seconds of Clang's.
#
#   lull_precompiled(target product|tests)
#   cmake -DLULL_PRECOMPILE=OFF   shows which source relies on another's include
option(LULL_PRECOMPILE "Precompile the headers that most sources share" ON)

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
  if(LULL_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM lull_${kind}_headers)
  endif()
endfunction()
