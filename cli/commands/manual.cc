#include "cli/commands/manual.h"

#include <algorithm>
#include <fstream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/client/install.h"
#include "cli/commands/verbs.h"

namespace lull {
namespace {

// Text as roff has to have it: nothing in it is a request or an escape.
std::string Roff(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string escaped = absl::StrReplaceAll(
        line, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"`", "\\(ga"}});
    if (!escaped.empty() && escaped[0] == '.') escaped.insert(0, "\\&");
    lines.push_back(std::move(escaped));
  }
  return absl::StrJoin(lines, "\n");
}

std::string Options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    std::string name = option->get_name(/*positional=*/false, /*all_options=*/true);
    if (option->get_positional()) name = option->get_name(true);
    absl::StrAppend(&text, ".TP\n.B ", Roff(absl::StrReplaceAll(name, {{",", ", "}})));
    if (option->get_type_size() > 0 && !option->get_type_name().empty()) {
      absl::StrAppend(&text, " ", Roff(option->get_type_name()));
    }
    absl::StrAppend(&text, "\n", Roff(option->get_description()), "\n");
  }
  return text;
}

int WriteAll(const CLI::App& app, const std::string& folder) {
  auto write = [&folder](const std::string& name, const std::string& page) {
    std::ofstream file(absl::StrCat(folder, "/", name, ".1"));
    file << page;
    file.close();
    if (!file) PrintError("man", absl::StrCat("cannot write to ", folder));
    return !file.fail();
  };
  bool good = write("lull", ManualPage(app, nullptr));
  for (const CLI::App* verb : VerbsOf(app)) {
    good =
        good && write(absl::StrCat("lull-", verb->get_name()), ManualPage(app, verb));
  }
  return good ? 0 : kExitFailed;
}

}  // namespace

std::vector<const CLI::App*> VerbsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) {
    return !verb->get_name().empty() && !verb->get_group().empty();
  });
}

std::vector<std::string> LongOptions(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back(absl::StrCat("--", name));
    }
  }
  return names;
}

std::string ManualPage(const CLI::App& app, const CLI::App* verb) {
  const CLI::App& about = verb != nullptr ? *verb : app;
  std::string name = verb != nullptr ? absl::StrCat("lull-", verb->get_name()) : "lull";
  std::string command =
      verb != nullptr ? absl::StrCat("lull ", verb->get_name()) : name;
  std::string page = absl::StrCat(
      ".TH ", Roff(absl::AsciiStrToUpper(name)), " 1 \"\" \"lull ", kVersion, "\"\n",
      ".SH NAME\n", Roff(name), " \\- ", Roff(about.get_description()), "\n",
      ".SH SYNOPSIS\n.B ", Roff(command), "\n[OPTIONS]");
  for (const CLI::Option* option : about.get_options()) {
    if (option->get_positional()) {
      absl::StrAppend(&page, " [", Roff(option->get_name(true)), "]");
    }
  }
  bool runs = verb != nullptr && verb->get_prefix_command();
  absl::StrAppend(&page,
                  verb == nullptr ? " VERB"
                  : runs          ? " \\-\\- COMMAND..."
                                  : "",
                  "\n.SH OPTIONS\n", Options(about));
  if (verb == nullptr) {
    absl::StrAppend(&page, ".SH VERBS\n");
    for (const CLI::App* one : VerbsOf(app)) {
      absl::StrAppend(&page, ".TP\n.BR lull\\-", Roff(one->get_name()), " (1)\n",
                      Roff(one->get_description()), "\n");
    }
  }
  absl::StrAppend(&page, ".SH NOTES\n.nf\n", Roff(about.get_footer()), "\n.fi\n");
  if (verb != nullptr) absl::StrAppend(&page, ".SH SEE ALSO\n.BR lull (1)\n");
  return page;
}

void AddMan(CLI::App& app, int* exit_code) {
  struct ManOptions {
    std::string verb, folder;
  };
  auto options = std::make_shared<ManOptions>();
  CLI::App* man = app.add_subcommand("man", "Print a manual page in roff");
  man->group("");  // of the installation; --help has no need of it
  man->add_option("VERB", options->verb, "the page of this verb (default: lull's own)");
  man->add_option("--into", options->folder, "write all pages to this folder");
  man->callback([&app, options, exit_code] {
    if (!options->folder.empty()) {
      *exit_code = WriteAll(app, options->folder);
      return;
    }
    std::vector<const CLI::App*> verbs = VerbsOf(app);
    auto verb = std::find_if(verbs.begin(), verbs.end(), [&](const CLI::App* one) {
      return one->get_name() == options->verb;
    });
    if (verb == verbs.end() && !options->verb.empty()) {
      PrintError("man", absl::StrCat("'", options->verb, "' is no verb"));
      *exit_code = kExitUsage;
      return;
    }
    Print(ManualPage(app, options->verb.empty() ? nullptr : *verb));
  });
}

}  // namespace lull
