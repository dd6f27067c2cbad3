#include "daemon/query/late_causes.h"

namespace lull::query {

uint32_t LateCauses::LineOf(RankPart& part, uint32_t site) {
  if (site == 0) return 0;
  const auto [it, fresh] = part.lines.try_emplace(site, 0);
  if (!fresh) return it->second;
  v1::Site told;
  part.names->FillSite(site, &told);
  const auto [line, first] =
      lines_.try_emplace({told.file(), told.line(), told.function()},
                         static_cast<uint32_t>(sites_.size() + 1));
  if (first) sites_.push_back(std::move(told));
  it->second = line->second;
  return it->second;
}

uint32_t LateCauses::Number(const std::string& cause, uint32_t line) {
  const auto [it, fresh] = numbers_.try_emplace({cause, line}, 0);
  if (fresh) {
    causes_.push_back(it->first);
    it->second = static_cast<uint32_t>(causes_.size());
  }
  return it->second;
}

void LateCauses::Fill(uint32_t number, v1::LateCause* out) const {
  if (number == 0) {
    out->set_cause("host_code");
    return;
  }
  const auto& [name, line] = causes_[number - 1];
  out->set_cause(name);
  if (line != 0) *out->mutable_site() = sites_[line - 1];
}

}  // namespace lull::query
