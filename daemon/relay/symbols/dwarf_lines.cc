#include "daemon/relay/symbols/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>

namespace lull::relay {
namespace {

std::string NameOf(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, kind, &attribute) != nullptr) {
      const char* name = dwarf_formstring(&attribute);
      if (name != nullptr) return Demangle(name);
    }
  }
  if (dwarf_attr_integrate(die, DW_AT_name, &attribute) != nullptr) {
    const char* name = dwarf_formstring(&attribute);
    if (name != nullptr) return name;
  }
  return "";
}

// Where an inlined function was called from.
void ReadCallSite(Dwarf_Die* unit, Dwarf_Die* inlined, std::string* file,
                  int32_t* line) {
  file->clear();
  *line = 0;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count) {
    const char* name = dwarf_filesrc(files, value, nullptr, nullptr);
    if (name != nullptr) *file = name;
  }
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0 &&
      value <= INT32_MAX) {
    *line = static_cast<int32_t>(value);
  }
}

// Appends the functions, real and inlined, that hold `address`, outermost first.
// dwarf_getscopes() is not enough: it leads from an inlined call to where that
// function was defined, and looks into no namespace, where clang puts functions.
void FindFunctions(Dwarf_Die* scope, uint64_t address, int depth,
                   std::vector<Dwarf_Die>* functions) {
  constexpr int kMaxDepth = 64;
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(scope, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
      case DW_TAG_inlined_subroutine:
        if (dwarf_haspc(&child, address) <= 0) continue;
        functions->push_back(child);
        return FindFunctions(&child, address, depth + 1, functions);
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        if (dwarf_haspc(&child, address) <= 0) continue;
        return FindFunctions(&child, address, depth + 1, functions);
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type: {
        size_t before = functions->size();
        FindFunctions(&child, address, depth + 1, functions);
        if (functions->size() > before) return;
        continue;
      }
      default:
        continue;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

DwarfLines::DwarfLines(Dwarf* dwarf) : dwarf_(dwarf) {
  Dwarf_CU* cu = nullptr;
  Dwarf_Half version;
  uint8_t type;
  Dwarf_Die die;
  Dwarf_Die split;
  while (dwarf_get_units(dwarf_, cu, &cu, &version, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    Dwarf_Addr base;
    Dwarf_Addr start;
    Dwarf_Addr end;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(&die, next, &base, &start, &end)) > 0) {
      if (start < end) units_.push_back({start, end, dwarf_dieoffset(&die)});
    }
  }
  std::sort(units_.begin(), units_.end(),
            [](const Unit& a, const Unit& b) { return a.start < b.start; });
}

DwarfLines::~DwarfLines() { dwarf_end(dwarf_); }

const DwarfLines::Unit* DwarfLines::FindUnit(uint64_t address) const {
  auto after = std::upper_bound(
      units_.begin(), units_.end(), address,
      [](uint64_t value, const Unit& unit) { return value < unit.start; });
  if (after == units_.begin()) return nullptr;
  const Unit& unit = *(after - 1);
  return address < unit.end ? &unit : nullptr;
}

std::vector<NativeFrame> DwarfLines::Resolve(uint64_t address) const {
  std::vector<NativeFrame> frames;
  const Unit* unit = FindUnit(address);
  Dwarf_Die die;
  if (unit == nullptr || dwarf_offdie(dwarf_, unit->offset, &die) == nullptr) {
    return frames;
  }
  NativeFrame frame;
  if (Dwarf_Line* source = dwarf_getsrc_die(&die, address); source != nullptr) {
    int line = 0;
    const char* file = dwarf_linesrc(source, nullptr, nullptr);
    if (file != nullptr) frame.file = file;
    if (dwarf_lineno(source, &line) == 0) frame.line = line;
  }
  std::vector<Dwarf_Die> functions;
  FindFunctions(&die, address, 0, &functions);
  for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
    frame.function = NameOf(&*function);
    frames.push_back(frame);
    if (dwarf_tag(&*function) == DW_TAG_subprogram) break;
    ReadCallSite(&die, &*function, &frame.file, &frame.line);
    frame.function.clear();
  }
  if (frames.empty() && frame.line != 0) frames.push_back(frame);
  return frames;
}

}  // namespace lull::relay
