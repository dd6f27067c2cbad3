// Descriptors of ours, noted for as long as they are open: a child that another thread
// forks meanwhile inherits them, and would keep them for good.
#pragma once

#include "preload/support/descriptor.h"

namespace lull {

class NotedDescriptor {
 public:
  NotedDescriptor() = default;
  ~NotedDescriptor();
  NotedDescriptor(const NotedDescriptor&) = delete;
  NotedDescriptor& operator=(const NotedDescriptor&) = delete;

  // Once. Without room it is not noted: a start has three.
  void note(int fd, const FileId& file);

 private:
  int place_ = -1;
};

// In a fork child, whose only thread this is. Preserves errno.
void close_inherited_descriptors();

}  // namespace lull
