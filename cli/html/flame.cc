#include "cli/html/flame.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cli/render/json_parts.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

struct Node {
  uint64_t total_ns = 0;
  uint64_t self_ns = 0;
  std::map<uint32_t, std::unique_ptr<Node>> children;  // by frame

  Node& Child(uint32_t frame) {
    auto& child = children[frame];
    if (child == nullptr) child = std::make_unique<Node>();
    return *child;
  }
};

void AddStack(const v1::HotLine& line, Packer& packer, Node* root) {
  // Root first; StackJson has the innermost first.
  Json frames = StackJson(line.stack(), /*native=*/false);
  Node* at = root;
  at->total_ns += line.self_ns();
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    at = &at->Child(packer.FrameNumber(std::move(*frame)));
    at->total_ns += line.self_ns();
  }
  at->self_ns += line.self_ns();
}

void Collect(const Node& node, std::vector<uint64_t>* totals) {
  totals->push_back(node.total_ns);
  for (const auto& [frame, child] : node.children) Collect(*child, totals);
}

struct Lists {
  Json frame = Json::array(), parent = Json::array();
  Json total = Json::array(), self = Json::array();

  void Add(const Node& node, Json of_frame, int64_t of_parent, uint64_t least_ns) {
    const auto number = static_cast<int64_t>(frame.size());
    frame.push_back(std::move(of_frame));
    parent.push_back(of_parent);
    total.push_back(node.total_ns / 1000);
    self.push_back(node.self_ns / 1000);
    std::vector<std::pair<uint64_t, uint32_t>> widest;
    for (const auto& [child, its] : node.children) {
      if (its->total_ns >= least_ns) widest.emplace_back(its->total_ns, child);
    }
    std::stable_sort(widest.begin(), widest.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [ns, child] : widest) {
      Add(*node.children.at(child), child, number, least_ns);
    }
  }
};

}  // namespace

Json FlameJson(const v1::Hot& stacks, size_t most, Packer& packer) {
  std::map<v1::HostSampleRole, Node> roots;
  for (const v1::HotLine& line : stacks.lines()) {
    AddStack(line, packer, &roots[line.role()]);
  }
  std::vector<uint64_t> totals;
  for (const auto& [role, root] : roots) Collect(root, &totals);
  std::sort(totals.begin(), totals.end(), std::greater<>());
  const uint64_t least_ns = totals.size() > most ? totals[most] + 1 : 0;
  Lists lists;
  Json roles = Json::array();
  for (const auto& [role, root] : roots) {
    roles.push_back({{"role", RoleKey(role)}, {"node", lists.frame.size()}});
    lists.Add(root, nullptr, -1, least_ns);
  }
  return {{"roles", std::move(roles)},
          {"frame", std::move(lists.frame)},
          {"parent", std::move(lists.parent)},
          {"total_us", std::move(lists.total)},
          {"self_us", std::move(lists.self)},
          {"least_us", least_ns / 1000},
          {"nodes", totals.size()}};
}

}  // namespace lull
