#include "tests/sim/nccl/communicator.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/sim/engine/clock.h"

namespace lull::sim::nccl {
namespace {

constexpr int64_t kLookNs = 100'000'000;  // how often the missing are looked after
constexpr int kNoColor = -1;              // NCCL_SPLIT_NOCOLOR

std::mutex g_mutex;  // of the next
std::string g_last_error;

uint64_t hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325ull;  // FNV-1a
  for (char c : text)
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return value;
}

std::string seconds(int64_t ns) {
  char text[32];
  snprintf(text, sizeof text, "%g s", static_cast<double>(ns) / 1e9);
  return text;
}

}  // namespace

std::string last_error() {
  std::lock_guard lock(g_mutex);
  return g_last_error;
}

Communicator* Communicator::join(const std::string& path, uint32_t rank,
                                 Members members, uint64_t parent, std::string* error) {
  const Driver* driver = nccl::driver();
  // Never freed: a captured kernel may be launched whenever.
  std::unique_ptr<Communicator> made(new Communicator);
  made->driver_ = driver;
  int device = 0;
  if (driver->current_device(&device) != 0) {
    void* context = nullptr;
    if (driver->retain_primary(&context, 0) != 0 || driver->set_context(context) != 0) {
      *error = "no device";
      return nullptr;
    }
  }
  auto size = static_cast<uint32_t>(members.size());
  made->segment_ = Segment::open(path, size, error);
  if (made->segment_ == nullptr) return nullptr;
  made->rank_ = rank;
  made->timeout_ns_ = driver->timeout_ns();
  made->device_ = device;
  made->id_ = hash(path);
  made->parent_ = parent;
  for (uint32_t member : members) {
    if (!made->member_names_.empty()) made->member_names_ += ",";
    made->member_names_ += std::to_string(member);
  }
  made->members_ = std::move(members);
  if (!made->segment_->join(rank)) {
    *error = "somebody is rank " + std::to_string(rank) + " already";
    return nullptr;
  }
  return made.release();
}

int Communicator::wait_for_all() {
  const int64_t deadline = now_ns() + timeout_ns_;
  for (;;) {
    uint32_t seen = segment_->changes();
    if (segment_->complete()) return kSuccess;
    if (now_ns() > deadline) break;
    segment_->wait(seen, kLookNs);
  }
  segment_->remove();
  fail(kSystemError, "not all ranks have come within " + seconds(timeout_ns_));
  return kSystemError;
}

uint64_t Communicator::choose(int color, int key) {
  segment_->choose(splits_, rank_, color, key);
  return splits_++;
}

int Communicator::collect(uint64_t split, Communicator** out) {
  *out = nullptr;
  const int64_t deadline = now_ns() + timeout_ns_;
  std::vector<const Choice*> choices(size());
  for (;;) {
    uint32_t seen = segment_->changes();
    std::vector<uint32_t> absent;
    for (uint32_t r = 0; r < size(); ++r) {
      choices[r] = segment_->choice(split, r);
      if (choices[r] == nullptr) absent.push_back(r);
    }
    if (absent.empty()) break;
    std::string why = trouble(absent, deadline);
    if (!why.empty()) {
      fail(kRemoteError, "split " + std::to_string(split) + ": " + why);
      return kRemoteError;
    }
    segment_->wait(seen, kLookNs);
  }
  const int color = choices[rank_]->color;
  if (color == kNoColor) return kSuccess;
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < size(); ++r) {
    if (choices[r]->color == color) ranks.push_back(r);
  }
  std::ranges::stable_sort(ranks, {}, [&](uint32_t r) { return choices[r]->key; });
  Members members;
  for (uint32_t r : ranks) members.push_back(members_[r]);
  auto mine = static_cast<uint32_t>(std::ranges::find(ranks, rank_) - ranks.begin());
  std::string path =
      segment_->path() + "." + std::to_string(split) + "." + std::to_string(color);
  std::string error;
  *out = join(path, mine, std::move(members), id_, &error);
  if (*out == nullptr) fail(kSystemError, error);
  return *out != nullptr ? kSuccess : kSystemError;
}

const Communicator::Plan* Communicator::plan(const std::vector<Call>& calls) {
  std::string key, shared;
  std::vector<Call> copied;
  size_t room = kPayload;
  for (const Call& call : calls) {
    std::string text = describe(call) + ";";
    key += text;
    const size_t bytes = call.count * type_size(call.type);
    if (nccl::copies(call.function) && bytes <= room && call.to != nullptr) {
      room -= bytes;
      copied.push_back(call);
      key += std::to_string(reinterpret_cast<uintptr_t>(call.from)) + "," +
             std::to_string(reinterpret_cast<uintptr_t>(call.to)) + ";";
    }
    if (!is_message(call.function)) shared += text;
  }
  std::unique_ptr<Plan>& found = plans_[key];
  if (found != nullptr) return found.get();
  auto made = std::make_unique<Plan>();
  for (const Call& call : calls) {
    made->bytes += call.count * type_size(call.type);
    made->moved += nccl::moved(call, size());
    if (!made->call_names.empty()) made->call_names += ",";
    made->call_names += name(call.function);
    if (is_message(call.function)) made->messages.push_back(call);
  }
  if (driver_->library_kernel(&made->kernel, driver_->library,
                              kernel_name(calls[0]).c_str()) != 0) {
    return nullptr;
  }
  made->communicator = this;
  made->copies = std::move(copied);
  made->collective = made->messages.size() < calls.size();
  made->signature = hash(shared);
  made->member = this;
  made->Exchange::communicator = id_;
  made->parent = parent_;
  made->rank = rank_;
  made->size = size();
  made->calls = static_cast<uint32_t>(calls.size());
  made->members = member_names_.c_str();
  made->names = made->call_names.c_str();
  made->begin = on_begin;
  found = std::move(made);
  return found.get();
}

int Communicator::launch(const std::vector<Call>& calls, void* stream) {
  if (int error = error_) return error;
  const Plan* planned;
  {
    std::lock_guard lock(plan_mutex_);
    planned = plan(calls);
  }
  if (planned == nullptr ||
      driver_->launch_exchange(planned, planned->kernel, stream) != 0) {
    return kUnhandledCudaError;
  }
  return kSuccess;
}

void Communicator::on_begin(const Exchange* exchange, uint64_t kernel, int64_t start_ns,
                            int64_t duration_ns, Exchanged* out) {
  auto* plan = static_cast<const Plan*>(exchange);
  plan->communicator->begin(*plan, kernel, start_ns, duration_ns, out);
}

void Communicator::begin(const Plan& plan, uint64_t kernel, int64_t start_ns,
                         int64_t duration_ns, Exchanged* out) {
  std::lock_guard lock(mutex_);
  Begun begun{&plan, kernel, collectives_, start_ns, duration_ns, 0, {}};
  begun.deadline_ns = std::max(start_ns, now_ns()) + timeout_ns_;
  if (plan.collective) out->sequence = static_cast<int64_t>(collectives_++);
  if (left_ || error_ != 0) {  // nobody waits for this rank any more
    out->end_ns = start_ns + duration_ns;
    out->error = left_ ? kInvalidUsage : error_.load();
    return;
  }
  if (plan.collective) {
    give(begun);
    segment_->arrive(begun.number, rank_, start_ns, duration_ns, plan.signature);
  }
  for (const Call& call : plan.messages) {
    const bool send = call.function == Function::kSend;
    const uint64_t number = messages_[{send, call.peer}]++;
    begun.messages.push_back(number);
    segment_->pass(send, send ? rank_ : call.peer, send ? call.peer : rank_, number,
                   start_ns, duration_ns);
  }
  if (!plan.messages.empty()) segment_->announce();
  if (resolve(begun, out)) return;
  begun_ = std::move(begun);
  start_thread();
  ++work_;
  futex_wake_all(reinterpret_cast<uint32_t*>(&work_));
}

const Arrival* Communicator::other_side(const Begun& begun, size_t message) const {
  const Call& call = begun.plan->messages[message];
  const bool send = call.function == Function::kSend;
  return segment_->passed(!send, send ? rank_ : call.peer, send ? call.peer : rank_,
                          begun.messages[message]);
}

// To the others, before they are told of this rank.
void Communicator::give(const Begun& begun) const {
  char* at = segment_->payload(begun.number, rank_);
  for (const Call& call : begun.plan->copies) {
    const size_t bytes = call.count * type_size(call.type);
    const bool mine = call.function == Function::kAllGather || call.peer == rank_;
    if (mine && call.from != nullptr) memcpy(at, call.from, bytes);
    at += bytes;
  }
}

// From the others, who have all come and agree.
void Communicator::take(const Begun& begun) const {
  size_t offset = 0;
  for (const Call& call : begun.plan->copies) {
    const size_t bytes = call.count * type_size(call.type);
    auto* to = static_cast<char*>(call.to);
    if (call.function == Function::kBroadcast) {
      memcpy(to, segment_->payload(begun.number, call.peer) + offset, bytes);
    } else {
      for (uint32_t r = 0; r < size(); ++r) {
        memcpy(to + r * bytes, segment_->payload(begun.number, r) + offset, bytes);
      }
    }
    offset += bytes;
  }
}

// Whether all have come; then also when it ends.
bool Communicator::resolve(const Begun& begun, Exchanged* out) {
  int64_t latest = begun.start_ns, longest = begun.duration_ns;
  bool agreed = true;
  auto look = [&](const Arrival* arrival) {
    if (arrival == nullptr) return false;
    latest = std::max(latest, arrival->start_ns);
    longest = std::max(longest, arrival->duration_ns);
    return true;
  };
  for (uint32_t r = 0; begun.plan->collective && r < size(); ++r) {
    const Arrival* arrival = segment_->arrival(begun.number, r);
    if (!look(arrival)) return false;
    agreed &= arrival->signature == begun.plan->signature;
  }
  for (size_t i = 0; i < begun.messages.size(); ++i) {
    if (!look(other_side(begun, i))) return false;
  }
  out->end_ns = latest + longest;
  if (!agreed) {
    fail(kInvalidUsage, "collective " + std::to_string(begun.number) + ": " +
                            begun.plan->names + " here, and something else elsewhere");
    out->error = kInvalidUsage;
  } else {
    take(begun);
  }
  return true;
}

std::vector<uint32_t> Communicator::missing(const Begun& begun) const {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; begun.plan->collective && r < size(); ++r) {
    if (segment_->arrival(begun.number, r) == nullptr) ranks.push_back(r);
  }
  for (size_t i = 0; i < begun.messages.size(); ++i) {
    if (other_side(begun, i) == nullptr) ranks.push_back(begun.plan->messages[i].peer);
  }
  return ranks;
}

// Why `ranks` will not come; empty if they may.
std::string Communicator::trouble(const std::vector<uint32_t>& ranks,
                                  int64_t deadline_ns) const {
  if (left_) return "the communicator was aborted";
  for (uint32_t r : ranks) {
    std::string who = "rank " + std::to_string(r);
    const Rank& other = segment_->rank(r);
    if (other.presence == Presence::kLeft) return who + " has left";
    if (!segment_->alive(r)) {
      return who + ": process " + std::to_string(other.pid) + " has ended";
    }
    if (now_ns() > deadline_ns) {
      return who + " has not come within " + seconds(timeout_ns_);
    }
  }
  return segment_->spoilt() ? "another rank has given up" : "";
}

bool Communicator::give_up(const Begun& begun, Exchanged* out) {
  std::string why = trouble(missing(begun), begun.deadline_ns);
  if (why.empty()) return false;
  if (resolve(begun, out)) return true;  // they came, and went
  std::string what = begun.plan->names;
  if (begun.plan->collective)
    what = "collective " + std::to_string(begun.number) + ", " + what;
  if (!left_) fail(kRemoteError, what + ": " + why);
  segment_->spoil();
  out->error = kRemoteError;
  out->end_ns = std::max(begun.start_ns, now_ns());
  return true;
}

void Communicator::fail(int result, const std::string& why) {
  int none = 0;
  if (!error_.compare_exchange_strong(none, result)) return;
  std::string text = "simulated NCCL: rank " + std::to_string(rank_) + " of " +
                     std::to_string(size()) + ": " + why;
  dprintf(STDERR_FILENO, "%s\n", text.c_str());
  std::lock_guard lock(g_mutex);
  g_last_error = text;
}

void Communicator::start_thread() {
  if (started_) return;
  started_ = true;
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto entry = [](void* self) -> void* {
    static_cast<Communicator*>(self)->wait_for_peers();
    return nullptr;
  };
  pthread_create(&thread_, nullptr, entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Communicator::wait_for_peers() {
  int64_t looked = 0;
  for (;;) {
    const uint32_t work = work_;
    std::optional<Begun> begun;
    {
      std::lock_guard lock(mutex_);
      begun = begun_;
    }
    if (!begun) {
      if (left_) return;
      futex_wait(reinterpret_cast<const uint32_t*>(&work_), work);
      looked = now_ns();
      continue;
    }
    Exchanged out;
    if (begun->plan->collective) out.sequence = static_cast<int64_t>(begun->number);
    const uint32_t changes = segment_->changes();
    bool ended = resolve(*begun, &out);
    // Whether others live is asked from time to time alone.
    if (!ended && (left_ || segment_->spoilt() || now_ns() - looked >= kLookNs)) {
      looked = now_ns();
      ended = give_up(*begun, &out);
    }
    if (!ended) {
      segment_->wait(changes, kLookNs);
      continue;
    }
    {
      std::lock_guard lock(mutex_);
      begun_.reset();
    }
    driver_->exchanged(begun->kernel, &out);
  }
}

void Communicator::leave() {
  left_ = true;
  segment_->leave(rank_);
  ++work_;
  futex_wake_all(reinterpret_cast<uint32_t*>(&work_));
  bool started;
  {
    std::lock_guard lock(mutex_);
    started = std::exchange(started_, false);
  }
  if (started) pthread_join(thread_, nullptr);
}

}  // namespace lull::sim::nccl
