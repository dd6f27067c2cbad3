#include "daemon/import/python_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "daemon/base/text.h"

namespace lull::imports {
namespace {

// "file(12): function"; false where it is not of that form.
bool SplitPlace(std::string_view name, PythonName* out) {
  const size_t mark = name.rfind("): ");
  if (mark == std::string_view::npos) return false;
  const size_t open = name.rfind('(', mark);
  if (open == std::string_view::npos || open == 0) return false;
  const std::string_view digits = name.substr(open + 1, mark - open - 1);
  int32_t line = 0;
  if (!absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &line) ||
      line < 0) {
    return false;
  }
  out->file = CleanText(name.substr(0, open));
  out->function = CleanText(name.substr(mark + 3));
  out->line = line;
  return true;
}

std::string WithoutAddress(std::string_view name) {
  const size_t at = name.find(" at 0x");
  if (at == std::string_view::npos) return CleanText(name);
  const size_t end = name.find_first_not_of("0123456789abcdefABCDEF", at + 6);
  std::string text(name.substr(0, at));
  if (end != std::string_view::npos) text.append(name.substr(end));
  return CleanText(text);
}

// "<built-in function zoom>", "<built-in method item of Tensor object>" by what they
// are: "zoom", "item of Tensor".
std::string OfBuiltin(std::string text) {
  for (std::string_view kind : {"<built-in function ", "<built-in method "}) {
    if (!text.starts_with(kind) || text.back() != '>') continue;
    text = text.substr(kind.size(), text.size() - kind.size() - 1);
    constexpr std::string_view kObject = " object";
    const bool object = text.size() > kObject.size() && text.ends_with(kObject);
    return object ? text.substr(0, text.size() - kObject.size()) : text;
  }
  return text;
}

}  // namespace

PythonName ParsePythonName(std::string_view name) {
  PythonName out;
  constexpr std::string_view kBuiltin = "<built-in ";
  constexpr std::string_view kModule = "nn.Module: ";
  if (!name.starts_with(kBuiltin) && SplitPlace(name, &out)) return out;
  out.function = OfBuiltin(WithoutAddress(name));
  out.file = name.starts_with(kModule) ? kModuleFile : kBuiltinFile;
  return out;
}

std::vector<v1::Frame> ParseCallStack(std::string_view text) {
  std::vector<v1::Frame> frames;
  for (absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ';')) {
    PythonName place;
    if (!SplitPlace({part.data(), part.size()}, &place)) continue;
    v1::Frame& frame = frames.emplace_back();
    frame.set_function(place.function);
    frame.set_file(place.file);
    frame.set_line(place.line);
  }
  return frames;
}

}  // namespace lull::imports
