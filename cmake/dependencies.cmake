# All third-party code comes as a package; see tools/install_dependencies.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# gRPC, protobuf and Abseil from Debian's static archives: the executables then
# need libc alone and run in any container. --start-group because the archives
# refer to each other in circles; systemd is listed by pkg-config and not needed.
# Only under TSan the shared ones: it can tell a library's doings from ours by the
# library alone (docs/sanitizers.md). Unless they are instrumented, too.
set(suffix a)
if(LULL_TSAN_PACKAGES)
  list(PREPEND CMAKE_PREFIX_PATH ${LULL_TSAN_PACKAGES})
elseif(LULL_SANITIZE STREQUAL "thread")
  set(suffix so)
endif()
pkg_check_modules(GRPC REQUIRED grpc++ protobuf)
set(grpc_libraries ${GRPC_STATIC_LIBRARIES})
list(REMOVE_DUPLICATES grpc_libraries)
list(REMOVE_ITEM grpc_libraries systemd dl rt m pthread atomic)
set(grpc_archives)
foreach(library ${grpc_libraries})
  # The second is Ubuntu's name for the archive of c-ares.
  find_library(grpc_${suffix}_${library}
    NAMES lib${library}.${suffix} lib${library}_static.${suffix} REQUIRED)
  list(APPEND grpc_archives ${grpc_${suffix}_${library}})
endforeach()
add_library(lull_grpc INTERFACE)
target_link_libraries(lull_grpc INTERFACE
  -Wl,--start-group ${grpc_archives} -Wl,--end-group Threads::Threads ${CMAKE_DL_LIBS} rt)

# SQLite, zstd, ncurses and elfutils, static for the same reason.
function(lull_static_library name header)
  find_path(${name}_include ${header} REQUIRED)
  add_library(lull_${name} INTERFACE)
  foreach(library ${ARGN})
    find_library(archive_${library} NAMES lib${library}.a REQUIRED)
    target_link_libraries(lull_${name} INTERFACE ${archive_${library}})
  endforeach()
  target_link_libraries(lull_${name} INTERFACE ${CMAKE_DL_LIBS} Threads::Threads m)
endfunction()
lull_static_library(sqlite sqlite3.h sqlite3)
lull_static_library(zstd zstd.h zstd)
lull_static_library(zlib zlib.h z)
lull_static_library(ncurses curses.h ncursesw tinfo)
lull_static_library(elfutils elfutils/libdwfl.h dw elf z lzma bz2 zstd)

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# Headers alone; its SAX reader goes through traces of gigabytes.
find_path(rapidjson_include rapidjson/reader.h REQUIRED)

# Headers alone, too.
find_path(tomlplusplus_include toml++/toml.h REQUIRED)
find_path(boost_include boost/beast.hpp REQUIRED)

# An executable that asks nothing of the image in which it runs: it brings its libc along.
# daemon/base/own_libc.h keeps that from loading parts of the image's.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,--no-warnings LULL_LINKER_CAN_BE_SILENT)
function(lull_runs_anywhere target)
  if(LULL_SANITIZE)  # whose runtimes need the shared libc
    return()
  endif()
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/daemon/base/no_dlopen.cc)
  target_link_options(${target} PRIVATE -static-pie)
  if(LULL_LINKER_CAN_BE_SILENT)  # of getaddrinfo() and the like; see own_libc.h
    target_link_options(${target} PRIVATE -Wl,--no-warnings)
  endif()
endfunction()
