#include "daemon/relay/dwarf_lines.h"

#include <dwarf.h>
#include <stdlib.h>

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
void ReadCallSite(Dwarf_Die* unit, Dwarf_Die* inlined, std::string* file, int32_t* line) {
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

// What encloses `address`, innermost first, to be freed. dwarf_getscopes() leads
// from an inlined call to where that function was defined; here it must lead to
// where it was inlined.
int EnclosingScopes(Dwarf_Die* unit, uint64_t address, Dwarf_Die** scopes) {
  Dwarf_Die* innermost = nullptr;
  int count = dwarf_getscopes(unit, address, &innermost);
  for (int i = 0; i < count; ++i) {
    int tag = dwarf_tag(&innermost[i]);
    if (tag == DW_TAG_subprogram) break;
    if (tag != DW_TAG_inlined_subroutine) continue;
    int nested = dwarf_getscopes_die(&innermost[i], scopes);
    free(innermost);
    return nested;
  }
  *scopes = innermost;
  return count;
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
  Dwarf_Die* scopes = nullptr;
  int count = EnclosingScopes(&die, address, &scopes);
  for (int i = 0; i < count; ++i) {
    int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    frame.function = NameOf(&scopes[i]);
    frames.push_back(frame);
    if (tag == DW_TAG_subprogram) break;
    ReadCallSite(&die, &scopes[i], &frame.file, &frame.line);
    frame.function.clear();
  }
  free(scopes);
  if (frames.empty() && frame.line != 0) frames.push_back(frame);
  return frames;
}

}  // namespace lull::relay
