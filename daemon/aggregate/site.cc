#include "daemon/aggregate/site.h"

#include <cstddef>

#include "daemon/aggregate/native_frames.h"
#include "daemon/base/text.h"
#include "daemon/base/word_list.h"

namespace lull::aggregate {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What follows ".../lib/python3.11/" (or lib64, python3, python311.zip), or "" when
// `file` does not lie in a Python library folder.
std::string_view InsidePythonLibrary(std::string_view file) {
  for (size_t at = file.find("/python3"); at != std::string_view::npos;
       at = file.find("/python3", at + 1)) {
    std::string_view before = file.substr(0, at);
    size_t slash = before.rfind('/');
    std::string_view folder =
        slash == std::string_view::npos ? before : before.substr(slash + 1);
    if (!folder.starts_with("lib")) continue;
    size_t end = at + std::string_view("/python3").size();
    while (end < file.size() && (IsDigit(file[end]) || file[end] == '.')) ++end;
    if (file.substr(end).starts_with("t/")) ++end;  // free-threaded builds
    if (file.substr(end).starts_with("zip/")) end += 3;
    if (end < file.size() && file[end] == '/') return file.substr(end + 1);
  }
  return {};
}

std::string_view ModuleName(const Frame& frame) {
  std::string_view module = frame.module;
  return module.substr(module.rfind('/') + 1);
}

// The first frame for which `wanted` holds, or nullptr.
template <typename Predicate>
const Frame* First(const std::vector<const Frame*>& stack, Predicate wanted) {
  for (const Frame* frame : stack) {
    if (wanted(*frame)) return frame;
  }
  return nullptr;
}

// "torch::autograd::accumulate(...)", between two nodes of the backward graph. The
// dispatcher's layers (VariableType, ADInplaceOrView) are there in any operator, and
// below everything is the engine's loop.
std::string_view BetweenNodes(const Frame& frame) {
  std::string_view name = frame.function;
  name = name.substr(0, name.find('('));
  if (!name.starts_with("torch::autograd::")) return {};
  for (std::string_view layer : {"VariableType::", "Node::", "Engine::", "python::"}) {
    if (name.substr(sizeof("torch::autograd::") - 1).starts_with(layer)) return {};
  }
  return name;
}

const Frame* Innermost(const std::vector<const Frame*>& stack) {
  return stack.empty() ? nullptr : stack.front();
}

// torch.profiler cuts off what sys.path begins with, so that libraries look like files
// beside the script, and has frames that are of no file.
bool IsInfrastructureOfATrace(std::string_view file) {
  for (std::string_view none : {"<built-in>", "<nn.Module>", "<operator>"}) {
    if (file == none) return true;
  }
  // PyTorch's own, and of the standard library what wraps the code of others.
  for (std::string_view folder :
       {"torch/", "asyncio/", "collections/", "concurrent/", "ctypes/", "email/",
        "encodings/", "http/", "importlib/", "json/", "logging/", "multiprocessing/",
        "re/", "unittest/", "urllib/", "xml/"}) {
    if (file.starts_with(folder)) return true;
  }
  constexpr std::string_view kModules =
      "_collections_abc.py _weakrefset.py abc.py ast.py codecs.py contextlib.py "
      "copy.py copyreg.py dataclasses.py enum.py functools.py genericpath.py gzip.py "
      "hashlib.py heapq.py inspect.py linecache.py numbers.py operator.py os.py "
      "pathlib.py pickle.py posixpath.py queue.py random.py re.py runpy.py "
      "selectors.py shutil.py socket.py socketserver.py ssl.py string.py "
      "subprocess.py tempfile.py textwrap.py threading.py tokenize.py traceback.py "
      "types.py typing.py warnings.py weakref.py zipfile.py";
  return IsAmong(file, kModules);
}

// Whether it is of a package through which programs that use it do all their GPU work.
bool IsFramework(std::string_view file) {
  for (std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    size_t at = file.find(folder);
    if (at == std::string_view::npos) continue;
    std::string_view inside = file.substr(at + folder.size());
    std::string_view package = inside.substr(0, inside.find('/'));
    if (package.size() == inside.size()) continue;  // a module, not a package
    // "cuda" is NVIDIA's cuda-python, below CuPy's and Numba's newer versions.
    for (std::string_view framework :
         {"torch", "cupy", "cupyx", "cupy_backends", "numba", "numba_cuda", "cuda",
          "jax", "jaxlib", "jax_plugins"}) {
      if (package == framework) return true;
    }
  }
  return false;
}

}  // namespace

bool IsPythonInfrastructure(std::string_view file) {
  if (file.starts_with("<frozen ") || file == "<string>") return true;
  if (!file.empty() && file[0] != '/' && IsInfrastructureOfATrace(file)) return true;
  if (IsFramework(file)) return true;
  std::string_view inside = InsidePythonLibrary(file);
  return !inside.empty() && !inside.starts_with("site-packages/") &&
         !inside.starts_with("dist-packages/");
}

bool IsPythonPackage(std::string_view file) {
  return file.find("/site-packages/") != std::string_view::npos ||
         file.find("/dist-packages/") != std::string_view::npos;
}

// "torch::autograd::generated::SelectBackward0::apply(...)"; nodes that are written by
// hand lie in torch::autograd itself.
std::string_view BackwardNode(const Frame& frame) {
  std::string_view name = frame.function;
  size_t end = name.find("::apply(");
  if (end == std::string_view::npos) return {};
  name = name.substr(0, end);
  if (!name.starts_with("torch::autograd::")) return {};
  std::string_view node = name.substr(name.rfind(':') + 1);
  bool known = Contains(node, "Backward") || node == "AccumulateGrad" ||
               node == "CopySlices" || node == "CppNode";
  return known ? node : std::string_view();
}

std::string SiteFunction(const Frame& frame) {
  std::string_view name = BackwardNode(frame);
  if (name.empty()) name = BetweenNodes(frame);
  return name.empty() ? frame.function : std::string(name);
}

const Frame* SelectSite(const std::vector<const Frame*>& python,
                        const std::vector<const Frame*>& native) {
  return SelectSite(python, native, [](const Frame& frame) {
    return IsPythonInfrastructure(frame.file);
  });
}

const Frame* SelectSite(const std::vector<const Frame*>& python,
                        const std::vector<const Frame*>& native,
                        absl::FunctionRef<bool(const Frame&)> is_infrastructure) {
  if (!python.empty()) {
    auto users = [&](const Frame& frame) { return !is_infrastructure(frame); };
    const Frame* frame = First(python, users);
    return frame != nullptr ? frame : Innermost(python);
  }
  auto node = [](const Frame& f) { return !BackwardNode(f).empty(); };
  auto between = [](const Frame& f) { return !BetweenNodes(f).empty(); };
  auto operators = [](const Frame& f) { return ModuleName(f).starts_with("libtorch"); };
  if (const Frame* frame = First(native, node)) return frame;
  if (const Frame* frame = FirstWritten(native)) return frame;
  if (const Frame* frame = First(native, between)) return frame;
  if (const Frame* frame = First(native, operators)) return frame;
  return Innermost(native);
}

}  // namespace lull::aggregate
