// What the stacks need before the first one is taken.
#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/stacks/native.h"
#include "preload/stacks/python_layout.h"
#include "preload/stacks/stacks.h"

namespace lull {

void stacks_prepare(char* segment) {
  python_find();  // again: an interpreter may have been loaded since
  python_describe(segment);
  python_layout_show(segment);
  native_prepare(segment);
}

}  // namespace lull
