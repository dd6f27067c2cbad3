#include "daemon/import/pickle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::imports {
namespace {

using Type = Pickle::Type;
using Value = Pickle::Value;

constexpr int64_t kMostNumber = int64_t{1} << 59;
// Some writers put all entries of a history there before they make a list of them.
constexpr size_t kMostStacked = 5'000'000;
// A vector, and what the allocator adds.
constexpr size_t kContainerBytes = 40;

// By their names in Python's pickle.py.
enum Opcode : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
};

// Those that would run or load something; "" for others.
absl::string_view NameOfCall(int opcode) {
  constexpr std::pair<int, absl::string_view> kCalls[] = {
      {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'i', "INST"},
      {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'b', "BUILD"},
      {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},      {0x83, "EXT2"},
      {0x84, "EXT4"},  {0x97, "NEXT_BUFFER"},
  };
  for (const auto& [call, name] : kCalls) {
    if (call == opcode) return name;
  }
  return "";
}

}  // namespace

// The stack machine that a pickle is a program of, without the instructions that could
// do anything.
class PickleMachine {
 public:
  PickleMachine(Input& input, const Pickle::Limits& limits, StringTable* texts)
      : input_(input), limits_(limits), texts_(*texts) {}

  absl::StatusOr<Pickle> Run() {
    absl::Status ran = Steps();
    // What the file says of itself is the better reason.
    if (!input_.status().ok()) return input_.status();
    LULL_RETURN_IF_ERROR(ran);
    return std::move(pickle_);
  }

 private:
  absl::Status Steps() {
    LULL_RETURN_IF_ERROR(Begin());
    while (true) {
      const int opcode = input_.Take();
      if (opcode == kStop) return End();
      LULL_RETURN_IF_ERROR(Step(opcode));
      pickle_.bytes_ = stack_.size() * sizeof(Value) + memo_.size() * sizeof(Value) +
                       room_ * sizeof(Value) +
                       pickle_.containers_.size() * kContainerBytes +
                       marks_.size() * sizeof(size_t) + texts_.bytes();
      if (pickle_.bytes_ > limits_.bytes || stack_.size() > kMostStacked) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than an import takes: its values would need more than ",
                         limits_.bytes >> 20, " MiB, or ", kMostStacked,
                         " of them stand side by side"));
      }
    }
  }

  absl::Status Begin() {
    if (input_.Take() != kProto) {
      return absl::InvalidArgumentError(
          "no memory snapshot: it is no pickle of protocol 2 or later");
    }
    LULL_ASSIGN_OR_RETURN(uint64_t protocol, Unsigned(1));
    if (protocol >= 2 && protocol <= 5) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("it is a pickle of protocol ", protocol, "; 2 to 5 are read"));
  }

  absl::Status End() {
    if (stack_.size() != 1 || !marks_.empty()) {
      return Damaged("it ends with more or less than one value");
    }
    if (input_.Take() >= 0) return Damaged("something follows its end");
    pickle_.root_ = stack_.back();
    return absl::OkStatus();
  }

  absl::Status Step(int opcode) {
    switch (opcode) {
      case kFrame:  // how much follows, for readers that want it at once
        return Unsigned(8).status();
      case kMark:
        marks_.push_back(stack_.size());
        return absl::OkStatus();
      case kNone:
        return Push(Value());
      case kNewTrue:
      case kNewFalse:
        return Push(Value(Type::kNumber, opcode == kNewTrue ? 1 : 0));
      case kBinInt: {
        LULL_ASSIGN_OR_RETURN(uint64_t number, Unsigned(4));
        return Push(
            Value(Type::kNumber, static_cast<int32_t>(static_cast<uint32_t>(number))));
      }
      case kBinInt1:
        return PushUnsigned(1);
      case kBinInt2:
        return PushUnsigned(2);
      case kLong1:
        return PushLong();
      case kBinFloat:
        LULL_RETURN_IF_ERROR(Unsigned(8).status());
        return Push(Value());
      case kShortBinUnicode:
        return PushText(1);
      case kBinUnicode:
        return PushText(4);
      case kBinUnicode8:
        return PushText(8);
      default:
        return StepOfContainers(opcode);
    }
  }

  absl::Status StepOfContainers(int opcode) {
    switch (opcode) {
      case kEmptyList:
      case kEmptyTuple:
        return Push(NewContainer(Type::kList));
      case kEmptyDict:
        return Push(NewContainer(Type::kDict));
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return MakeTuple(static_cast<size_t>(opcode - kTuple1) + 1);
      case kTuple: {
        LULL_ASSIGN_OR_RETURN(size_t count, PopMark());
        return MakeTuple(count);
      }
      case kAppend:
        return Extend(Type::kList, 1);
      case kSetItem:
        return Extend(Type::kDict, 2);
      case kAppends:
      case kSetItems: {
        LULL_ASSIGN_OR_RETURN(size_t count, PopMark());
        if (opcode == kSetItems && count % 2 != 0) {
          return Damaged("a key without a value");
        }
        return Extend(opcode == kAppends ? Type::kList : Type::kDict, count);
      }
      case kBinGet:
        return Get(1);
      case kLongBinGet:
        return Get(4);
      case kBinPut:
        return Put(1);
      case kLongBinPut:
        return Put(4);
      case kMemoize:
        return PutAt(memo_.size());
      default:
        return Refuse(opcode);
    }
  }

  absl::Status Refuse(int opcode) const {
    if (opcode < 0) return CutShort();
    const absl::string_view name = NameOfCall(opcode);
    const uint64_t at = input_.offset() - 1;
    if (!name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no memory snapshot: at byte ", at,
                       " this pickle wants to load or call "
                       "something (",
                       name, "), which no snapshot does; nothing of it was done"));
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("no memory snapshot, or a damaged one: it has the opcode "
                        "0x%02x at byte %u, which none has",
                        opcode, at));
  }

  absl::Status CutShort() const {
    return absl::DataLossError(absl::StrCat(
        "it is cut short: it ends within the pickle, at byte ", input_.offset()));
  }
  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat("it is damaged at byte ", input_.offset(), ": ", what));
  }

  // Little-endian.
  absl::StatusOr<uint64_t> Unsigned(size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; ++i) {
      const int byte = input_.Take();
      if (byte < 0) return CutShort();
      number |= static_cast<uint64_t>(byte) << (8 * i);
    }
    return number;
  }

  absl::Status Push(Value value) {
    stack_.push_back(value);
    return absl::OkStatus();
  }

  absl::Status PushUnsigned(size_t bytes) {
    LULL_ASSIGN_OR_RETURN(uint64_t number, Unsigned(bytes));
    return Push(Value(Type::kNumber, static_cast<int64_t>(number)));
  }

  // Two's complement, of any length.
  absl::Status PushLong() {
    LULL_ASSIGN_OR_RETURN(uint64_t length, Unsigned(1));
    if (length > 8) {
      for (uint64_t i = 0; i < length; ++i) LULL_RETURN_IF_ERROR(Unsigned(1).status());
      return Push(Value());
    }
    LULL_ASSIGN_OR_RETURN(uint64_t bits, Unsigned(length));
    if (length > 0 && length < 8 && (bits >> (8 * length - 1) & 1) != 0) {
      bits |= UINT64_MAX << (8 * length);
    }
    const auto number = static_cast<int64_t>(bits);
    if (number > kMostNumber || number < -kMostNumber) return Push(Value());
    return Push(Value(Type::kNumber, number));
  }

  absl::Status PushText(size_t length_bytes) {
    LULL_ASSIGN_OR_RETURN(uint64_t length, Unsigned(length_bytes));
    if (length > limits_.text_bytes) {
      if (input_.Peek() < 0) return CutShort();
      return absl::ResourceExhaustedError(
          absl::StrCat("a text of ", length, " bytes at byte ", input_.offset(),
                       "; no snapshot has one of more than ", limits_.text_bytes));
    }
    text_.clear();
    for (uint64_t i = 0; i < length; ++i) {
      const int byte = input_.Take();
      if (byte < 0) return CutShort();
      text_.push_back(static_cast<char>(byte));
    }
    return Push(Value(Type::kText, texts_.Intern(CleanText(text_))));
  }

  Value NewContainer(Type type) {
    const size_t index = pickle_.containers_.size();
    pickle_.containers_.emplace_back();
    return Value(type, static_cast<int64_t>(index));
  }

  absl::StatusOr<size_t> PopMark() {
    if (marks_.empty()) return Damaged("a mark is missing");
    const size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }

  // Above the last mark.
  bool Has(size_t count) const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count;
  }

  // Moves the `count` values on top of the stack into a container.
  void MoveTop(size_t count, std::vector<Value>* to) {
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    const size_t room = to->capacity();
    to->insert(to->end(), first, stack_.end());
    stack_.erase(first, stack_.end());
    room_ += to->capacity() - room;
  }

  absl::Status MakeTuple(size_t count) {
    if (!Has(count)) return Damaged("a value is missing");
    const Value tuple = NewContainer(Type::kList);
    MoveTop(count, &pickle_.containers_[tuple.index()]);
    return Push(tuple);
  }

  // What lies below the values.
  absl::Status Extend(Type type, size_t count) {
    if (!Has(count + 1)) return Damaged("a value is missing");
    const Value container = stack_[stack_.size() - count - 1];
    if (container.type() != type) {
      return Damaged("something is added to what is no list or dict");
    }
    MoveTop(count, &pickle_.containers_[container.index()]);
    return absl::OkStatus();
  }

  absl::Status Get(size_t bytes) {
    LULL_ASSIGN_OR_RETURN(uint64_t at, Unsigned(bytes));
    if (at >= memo_.size()) return Damaged("a value that was not kept is asked for");
    return Push(memo_[at]);
  }

  absl::Status Put(size_t bytes) {
    LULL_ASSIGN_OR_RETURN(uint64_t at, Unsigned(bytes));
    return PutAt(at);
  }

  // Writers number what they keep one by one.
  absl::Status PutAt(uint64_t at) {
    if (!Has(1)) return Damaged("a value is missing");
    if (at > memo_.size()) return Damaged("values are kept out of order");
    if (at == memo_.size()) memo_.emplace_back();
    memo_[at] = stack_.back();
    return absl::OkStatus();
  }

  Input& input_;
  const Pickle::Limits limits_;
  StringTable& texts_;
  Pickle pickle_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<Value> memo_;
  size_t room_ = 0;  // of all containers, in values
  std::string text_;
};

absl::StatusOr<Pickle> Pickle::Read(Input& input, const Limits& limits,
                                    StringTable* texts) {
  return PickleMachine(input, limits, texts).Run();
}

}  // namespace lull::imports
