// A job as a trace for other tools: Chrome's JSON in the dialect of torch.profiler, or
// Perfetto's protobuf. Written as it is read: memory does not grow with the events.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::exports {

// Takes the next bytes of the file, at most a bit more than a MiB, and how much of what
// is to be read has been, 0 to 1. An error ends the export with it.
using PieceSink = std::function<absl::Status(absl::string_view bytes, double done)>;

// Reads one consistent state of the store. NOT_FOUND for no such job or process,
// INVALID_ARGUMENT for a range or a format that is none.
absl::Status Export(storage::Store& store, const lull::v1::ExportRequest& request,
                    const PieceSink& sink);

}  // namespace lull::exports
