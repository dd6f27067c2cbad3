// The verbs that show a job: each is a section of the collector's report, as text and
// as JSON.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/hot.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {
namespace {

constexpr AnswerVerb kVerbs[] = {
    {"report", "Everything about a job on one page",
     "--html: one file with a timeline, tables and graphs, which any browser shows "
     "without a network.\n\n"
     "Examples:\n  lull report\n  lull report resnet --html resnet.html\n"
     "  lull report resnet --json --top 0 > report.json",
     v1::SECTION_UNSPECIFIED, ReportText, ReportJson, nullptr, /*sorts=*/false,
     /*by_region=*/false, /*as_page=*/true},
    {"gaps", "Why the GPU was idle, by cause and by lines before and after",
     "Times are of traced time alone; see `lull run --help` on --gpu and "
     "--schedule.\n\n"
     "Examples:\n  lull gaps\n  lull gaps resnet --rank 0 --by stack --top 5\n"
     "  lull gaps --region forward",
     v1::SECTION_GAPS, GapsText, GapsJson, nullptr, /*sorts=*/false,
     /*by_region=*/true},
    {"hot", "Where host time goes: lines that threads ran or waited in, by samples",
     "self: the line itself; total: and what it calls, once a sample also where it "
     "calls itself.\nrunning, ready (for a processor) and blocked are parts of "
     "total.\n\n"
     "Threads: main, feeder (gives the GPU work beside it), autograd, loader "
     "(DataLoader workers),\nother.\n\n"
     "Examples:\n  lull hot\n  lull hot resnet --role loader --by function\n"
     "  lull hot --region forward\n"
     "  lull hot --folded > host.folded && flamegraph.pl host.folded > host.svg",
     v1::SECTION_HOT, HotText, HotJson, FoldedText, /*sorts=*/false,
     /*by_region=*/true},
    {"kernels", "What ran on the GPU: kernels by time, copies by direction",
     "Examples:\n  lull kernels\n  lull kernels resnet --top 0 --json",
     v1::SECTION_KERNELS, KernelsText, KernelsJson},
    {"ops", "Operators of PyTorch by GPU time and memory, forward and backward apart",
     "own: of the operator itself; total: with the operators that it calls.\n"
     "All of it is of traced time. Bytes are those that tensors took of devices, freed "
     "again or not.\n\n"
     "Examples:\n  lull ops\n  lull ops resnet --sort memory --top 0 --json",
     v1::SECTION_OPERATORS, OperatorsText, OperatorsJson, nullptr, /*sorts=*/true},
    {"steps", "Training steps and what they were made of",
     "--top shows the newest steps; the median is over all after warm-up.\n\n"
     "Examples:\n  lull steps\n  lull steps resnet --rank 0 --top 50 --json",
     v1::SECTION_STEPS, StepsText, StepsJson},
    {"data", "What a DataLoader's batches cost the training, and its workers, by line",
     "All of __next__ counts, whether it waits for a worker or does the work "
     "itself.\nWhat workers did is told by samples: what a batch cost them, how many "
     "were busy,\nand how many would keep up with the training.\n\n"
     "Examples:\n  lull data\n  lull data resnet --rank 0 --json",
     v1::SECTION_DATA, DataText, DataJson},
    {"ranks", "Ranks that waited for each other: who was late, why, and what it cost",
     "Of the ranks of one host, by their waits for collectives of gloo. late in: steps "
     "in which the\nrank was the last one for a cause that is told below; cost to "
     "others: what they waited then, added up.\n\n"
     "Examples:\n  lull ranks\n  lull ranks resnet --phase all --json",
     v1::SECTION_RANKS, RanksText, RanksJson},
    {"stacks", "What every rank is doing now: stacks of threads, equal ones together",
     "By the newest look at each thread that lull looks at, so for a job that hangs, "
     "too. A look is\nten times a second; --until shows what they did at an earlier "
     "time.\n\n"
     "Examples:\n  lull stacks\n  lull stacks resnet --rank 3 --role main\n"
     "  lull stacks resnet --until 10m --json",
     v1::SECTION_STACKS, StacksText, StacksJson, FoldedThreads},
    {"regions", "What the program named (record_function): time, and what the GPU did",
     "Regions are those of torch.profiler.record_function, by the names around them; "
     "libraries name some of their own, as Optimizer.step and DataLoader do.\n\n"
     "Examples:\n  lull regions\n  lull regions resnet --top 0 --json",
     v1::SECTION_REGIONS, RegionsText, RegionsJson},
    {"syncs", "Where the host blocked until the GPU was done, by source line",
     "Examples:\n  lull syncs\n  lull syncs 3f9a1c --by stack --top 5\n  lull syncs "
     "--rank 0 --since 2m --until 10m --json",
     v1::SECTION_SYNCS, SyncsText, SyncsJson},
    {"waits", "What the host waited for: data, locks, io, by source line",
     "Examples:\n  lull waits\n  lull waits --by stack --since 90s", v1::SECTION_WAITS,
     WaitsText, WaitsJson},
    {"gc", "Pauses of the Python garbage collector, and the lines that set them off",
     "Example:\n  lull gc --top 5", v1::SECTION_GC, GcText, GcJson},
    {"allocs", "Device, pinned and tensor memory that was allocated, by source line",
     "Examples:\n  lull allocs\n  lull allocs resnet --by function --json",
     v1::SECTION_ALLOCATIONS, AllocationsText, AllocationsJson},
    {"memory",
     "Live, peak and reserved memory, what made up the peak, growth per step, "
     "cudaMalloc retries",
     "--top and --by are about the lines that made up the peak.\n\n"
     "Examples:\n  lull memory\n  lull memory resnet --rank 0 --since 2m --json",
     v1::SECTION_MEMORY, MemoryText, MemoryJson},
};

}  // namespace

absl::Span<const AnswerVerb> AnswerVerbs() { return kVerbs; }

void AddAnswers(CLI::App& app, int* exit_code) {
  for (const AnswerVerb& verb : kVerbs) AddAnswerVerb(app, verb, exit_code);
}

}  // namespace lull
