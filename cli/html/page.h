// `lull report --html`: one file with everything about a job, for any browser, offline.
//
// The page's script and style are the product's own and are allowed by their hashes
// alone; what comes from the job is data in an element that no browser runs.
#pragma once

#include <string>

#include "cli/render/json.h"
#include "daemon/compare/comparison.h"
#include "query.pb.h"

namespace lull {

// What the page shows. `report` is what `lull report --json` prints, `steps`, `memory`,
// `hot`, `data`, `regions` and `operators` are what those verbs print, packed
// (packed.h). `reply` answers a request as AskForPage makes it; `made_at` is a date.
Json PageData(const v1::ReportReply& reply, const std::string& made_at);
std::string MadeNow();  // a `made_at`
// Of the list of jobs, and of a comparison: what `lull jobs --json` and `lull diff
// --json` print.
Json JobsPageData(const v1::ListJobsReply& reply);
Json DiffPageData(const compare::Comparison& comparison, size_t top);

// The whole file, below kPageBytes: of what is too much names are cut and short gaps
// left out, and the page says so.
inline constexpr size_t kPageBytes = 3'000'000;
std::string Page(const v1::ReportReply& reply, const std::string& made_at);
// Of a comparison (`lull diff --html`), as short as its `top` rows.
std::string DiffPage(const compare::Comparison& comparison, size_t top,
                     const std::string& made_at);

// For `lull web`: the data of a page within kPageBytes, as text, and the page around
// such a text. Data of a page that is served say "live": true if it shall ask for newer
// ones, else false.
std::string LivePageText(const v1::ReportReply& reply, bool live);
std::string ServedPage(const std::string& data);

}  // namespace lull
