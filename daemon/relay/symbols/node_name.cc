#include "daemon/relay/symbols/node_name.h"

#include <cstddef>

#include "daemon/base/word_list.h"
#include "daemon/relay/symbols/elf_module.h"

namespace lull::relay {
namespace {

// What torchgen of PyTorch 1.13 to 2.15 calls VIEW_FUNCTIONS, with those that
// it derives from them.
constexpr std::string_view kViews =
    "Alias AsStrided Chunk Conj Detach Diagonal Expand Imag Indices Lift LiftFresh "
    "Narrow NegView NestedGetValues NestedViewFromBuffer NestedViewFromJagged "
    "Permute Real ReshapeAlias Select Slice Split SplitWithSizes Squeeze T Transpose "
    "Unbind Unfold UnsafeSplit UnsafeSplitWithSizes UnsafeView Unsqueeze Values View "
    "ViewAsComplex ViewAsReal";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Each of them stands for what was named before, so that a name of 500 characters can
// mean gigabytes. With so few it means some 3^8 times its own length at most.
constexpr long kMostSubstitutions = 24;

// GCC marks the name of a class that no other file sees, as in an anonymous namespace.
std::string_view WithoutMark(std::string_view type) {
  if (!type.empty() && type.front() == '*') type.remove_prefix(1);
  return type;
}

}  // namespace

std::string NodeName(const std::string& mangled_type) {
  const std::string_view type = WithoutMark(mangled_type);
  if (std::count(type.begin(), type.end(), 'S') > kMostSubstitutions) {
    return mangled_type;
  }
  std::string name = Demangle(("_ZTI" + std::string(type)).c_str());
  constexpr std::string_view kTypeInfo = "typeinfo for ";
  if (name.compare(0, kTypeInfo.size(), kTypeInfo) != 0) return mangled_type;
  name.erase(0, kTypeInfo.size());
  size_t end = name.find('<');
  if (end != std::string::npos) name.resize(end);
  size_t colon = name.rfind(':');
  if (colon != std::string::npos) name.erase(0, colon + 1);
  return name.empty() ? mangled_type : name;
}

bool MakesWorkInForward(std::string_view node) {
  if (node == "CopySlices") return false;
  constexpr std::string_view kBackward = "Backward";
  size_t end = node.find(kBackward);
  if (end == std::string_view::npos) return true;
  std::string_view rest = node.substr(end + kBackward.size());
  constexpr std::string_view kVariant = "Autograd";  // of another kind of tensor
  bool of_a_view = rest.substr(0, kVariant.size()) == kVariant ||
                   std::all_of(rest.begin(), rest.end(), IsDigit);
  constexpr std::string_view kCopy = "_copy";  // what it says, and no view
  if (rest.size() >= kCopy.size() && rest.substr(rest.size() - kCopy.size()) == kCopy) {
    of_a_view = false;
  }
  return !of_a_view || !IsAmong(node.substr(0, end), kViews);
}

}  // namespace lull::relay
