#include "preload/autograd/node.h"

#include <atomic>

#include "preload/entry/state.h"
#include "preload/stacks/python_objects.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

constexpr char kCurrentNode[] = "_ZN5torch8autograd16get_current_nodeEv";
constexpr char kPeek[] = "_ZN2at15sequence_number4peekEv";
constexpr char kTask[] = "_ZN5torch8autograd25get_current_graph_task_idEv";
constexpr char kThread[] = "_ZN2at14RecordFunction15currentThreadIdEv";

// std::shared_ptr<Node> or c10::intrusive_ptr<Node>: not trivial, so that the compiler
// returns it through memory, in whatever register the platform has for that. What the
// function does not write stays zero only where we see to it: intrusive_ptr has but the
// first word.
class NodePointer {
 public:
  NodePointer(const NodePointer&) = delete;
  ~NodePointer() {}

  uintptr_t node() const { return node_; }
  uintptr_t block() const { return block_; }

 private:
  uintptr_t node_;
  uintptr_t block_;
};

using CurrentNode = NodePointer();
using Peek = uint64_t();
using Thread = uint64_t();
using Task = int();

constexpr NodeLayout kShared = {24, 48, 8, false};
constexpr NodeLayout kIntrusive = {16, 40, 8, true};

// Written once, before g_layout is.
CurrentNode* g_current_node = nullptr;
Peek* g_peek = nullptr;
Thread* g_thread = nullptr;
Task* g_task = nullptr;
std::atomic<const NodeLayout*> g_layout{nullptr};
std::atomic<bool> g_tried{false};

// The engine holds the node, in what it runs and in what get_current_node() reads, for
// as long as this thread is in it: we are never the last.
void give_back(const NodeLayout& layout, const NodePointer& pointer) {
  uintptr_t at = layout.counts_itself ? pointer.node() : pointer.block();
  if (!plausible(at)) return;
  // In both forms the owners are the low 32 bits of a word on a little-endian machine.
  auto* owners =
      reinterpret_cast<uint32_t*>(at + static_cast<uintptr_t>(layout.owners));
  __atomic_fetch_sub(owners, 1, __ATOMIC_ACQ_REL);
}

// The name that std::type_info holds (Itanium C++ ABI, 2.9.5): the word before an
// object's table of virtual functions leads to it.
const char* type_of(uintptr_t object) {
  uintptr_t table = load<uintptr_t>(object, 0);
  if (!plausible(table)) return nullptr;
  uintptr_t info = load<uintptr_t>(table, -static_cast<int>(sizeof(uintptr_t)));
  if (!plausible(info)) return nullptr;
  auto name = load<uintptr_t>(info, sizeof(uintptr_t));
  // Text has no alignment.
  return plausible(name & ~uintptr_t{7}) ? reinterpret_cast<const char*>(name)
                                         : nullptr;
}

}  // namespace

const NodeLayout* node_layout(TorchVersion version) {
  if (version.major != 2 || version.minor > 15) return nullptr;
  return version.minor >= 13 ? &kIntrusive : &kShared;
}

void autograd_try_install(const PythonApi* api) {
  if (g_tried.load(std::memory_order_acquire) || recording_segment() == nullptr) return;
  PyObject* modules = api->module_dict();
  if (modules == nullptr) return;
  // Imported after all of PyTorch's libraries are initialised.
  if (api->dict_get(modules, "torch.autograd.profiler") == nullptr) return;
  PyObject* torch = api->dict_get(modules, "torch");
  if (torch == nullptr) return;
  g_tried.store(true, std::memory_order_release);
  const NodeLayout* layout = node_layout(torch_version(api, torch));
  if (layout == nullptr) return;
  NextSymbol symbols[] = {
      {kCurrentNode, nullptr}, {kPeek, nullptr}, {kThread, nullptr}, {kTask, nullptr}};
  if (!find_symbols_with(kCurrentNode, symbols, 4)) return;
  for (const NextSymbol& symbol : symbols) {
    // A PyTorch that does not number its tasks has all the rest.
    if (symbol.address == nullptr && symbol.name != kTask) return;
  }
  g_current_node = reinterpret_cast<CurrentNode*>(symbols[0].address);
  g_peek = reinterpret_cast<Peek*>(symbols[1].address);
  g_thread = reinterpret_cast<Thread*>(symbols[2].address);
  g_task = reinterpret_cast<Task*>(symbols[3].address);
  g_layout.store(layout, std::memory_order_release);
}

bool autograd_is_known() { return g_layout.load(std::memory_order_acquire) != nullptr; }

bool current_node(Node* node) {
  const NodeLayout& layout = *g_layout.load(std::memory_order_acquire);
  NodePointer pointer = g_current_node();
  uintptr_t at = pointer.node();
  if (!plausible(at)) return false;
  *node = {type_of(at), load<uint64_t>(at, layout.sequence_number),
           load<uint64_t>(at, layout.forward_thread)};
  give_back(layout, pointer);
  return true;
}

int32_t graph_task() { return g_task == nullptr ? kNoTask : g_task(); }

uint64_t nodes_made() { return g_peek(); }

uint64_t forward_thread() { return g_thread(); }

}  // namespace lull
