// What of CUPTI 13.2 matters where it meets a driver that does not serve it: every call
// asks the driver for its table for tools, and where it gets none asks itself for the
// text of the error, until the stack ends. It exports what lull wants of a CUPTI.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static const uint8_t for_tools[16] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42,
                                      0xa4, 0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};

static int is_served(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const void* table = NULL;
  if (driver == NULL) return 0;
  int (*get)(const void**, const void*) =
      (int (*)(const void**, const void*))dlsym(driver, "cuGetExportTable");
  return get != NULL && get(&table, for_tools) == 0;
}

static int ask(void) {
  if (!is_served()) __builtin_trap();  // the stack's end, sooner
  return 15;                           // CUPTI_ERROR_NOT_INITIALIZED
}

#define FUNCTION(name) \
  int name(void) { return ask(); }
FUNCTION(cuptiGetVersion)
FUNCTION(cuptiGetTimestamp)
FUNCTION(cuptiActivityRegisterCallbacks)
FUNCTION(cuptiActivityEnable)
FUNCTION(cuptiActivityDisable)
FUNCTION(cuptiActivityFlushAll)
FUNCTION(cuptiActivityGetNextRecord)
FUNCTION(cuptiActivityGetNumDroppedRecords)
FUNCTION(cuptiGetCallbackName)
FUNCTION(cuptiActivityGetNvtxExtPayloadAttr)
