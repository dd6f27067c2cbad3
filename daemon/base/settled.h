// A queue in order for items that come in almost in order: adding is a push_back,
// and Settle() sorts what is new into the rest.
//
// Cheap because only the end of the queue is touched: what came in since the last
// Settle, and what is in the queue and follows the first of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "daemon/base/check.h"

namespace lull {

// `Less` is a total order, so that the order of arrival leaves no trace.
template <typename T, typename Less>
class Settled {
 public:
  void Add(const T& item) { items_.push_back(item); }

  // Returns the index of the first item that is not where it was before.
  size_t Settle() {
    auto fresh = items_.begin() + static_cast<ptrdiff_t>(sorted_);
    if (fresh == items_.end()) return size();
    std::sort(fresh, items_.end(), Less());
    auto from = std::upper_bound(items_.begin() + static_cast<ptrdiff_t>(first_), fresh,
                                 *fresh, Less());
    std::inplace_merge(from, fresh, items_.end(), Less());
    sorted_ = items_.size();
    return static_cast<size_t>(from - items_.begin()) - first_;
  }

  void DropFront(size_t count) {
    LULL_CHECK(count <= size(), "more is dropped than there is");
    first_ += count;
    if (first_ < 1024 || first_ * 2 < items_.size()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(first_));
    sorted_ = sorted_ > first_ ? sorted_ - first_ : 0;
    first_ = 0;
  }

  size_t size() const { return items_.size() - first_; }
  bool empty() const { return size() == 0; }
  T& operator[](size_t index) { return items_[first_ + index]; }
  const T& operator[](size_t index) const { return items_[first_ + index]; }

  // The number of items at the front for which `before` holds; they come first.
  template <typename Before>
  size_t CountWhile(Before before) const {
    auto begin = items_.begin() + static_cast<ptrdiff_t>(first_);
    return static_cast<size_t>(std::partition_point(begin, items_.end(), before) -
                               begin);
  }

 private:
  std::vector<T> items_;
  size_t first_ = 0;   // those before it are gone
  size_t sorted_ = 0;  // those before it are in order
};

}  // namespace lull
