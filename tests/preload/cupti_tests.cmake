# Unit tests of preload/cupti/: included by tests/preload/CMakeLists.txt.
lull_test(cupti_unit_test LABEL unit
  SOURCES cupti/backlog_unit_test.cc cupti/clock_unit_test.cc cupti/decode_unit_test.cc
          cupti/delivery_unit_test.cc cupti/fake_cupti.cc cupti/schedule_unit_test.cc
          cupti/takedown_unit_test.cc cupti/tracer_unit_test.cc
  LIBRARIES preload_test_support)

find_path(LULL_CUPTI_INCLUDE cupti.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda
  PATH_SUFFIXES include extras/CUPTI/include)
if(LULL_CUPTI_INCLUDE AND LULL_CUDA_INCLUDE)
  lull_test(cupti_layout_test LABEL unit SOURCES cupti/layout_test.cc)
  target_include_directories(cupti_layout_test SYSTEM PRIVATE
    ${LULL_CUPTI_INCLUDE} ${LULL_CUDA_INCLUDE})
endif()
