// `lull completion SHELL` and what it prints.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/base/output.h"
#include "cli/commands/manual.h"
#include "cli/commands/verbs.h"

namespace lull {
namespace {

// "line function stack" of an option whose value is one of these words; "" else.
std::string Values(const CLI::Option& option) {
  std::string type = option.get_type_name();
  return type.find('|') == std::string::npos ? ""
                                             : absl::StrReplaceAll(type, {{"|", " "}});
}

bool TakesValue(const CLI::Option& option) { return option.get_type_size() > 0; }

// Within single quotes of a shell, and on one line.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}, {"\n", " "}}),
                      "'");
}

std::string Bash(const CLI::App& app) {
  std::vector<std::string> verbs;
  std::string cases;
  std::string values;
  for (const CLI::App* verb : VerbsOf(app)) {
    verbs.push_back(verb->get_name());
    absl::StrAppend(&cases, "    ", verb->get_name(), ") words='",
                    absl::StrJoin(LongOptions(*verb), " "), "' ;;\n");
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_lnames().empty() || !TakesValue(*option)) continue;
      std::string words = Values(*option);
      absl::StrAppend(
          &values, "    ", verb->get_name(), ":--", option->get_lnames().front(), ") ",
          words.empty() ? "return" : absl::StrCat("words='", words, "'"), " ;;\n");
    }
  }
  return absl::StrCat(
      "# Completion of lull for bash; made by `lull completion bash`.\n"
      "_lull() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words= i\n"
      "  local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '",
      absl::StrJoin(verbs, " "), " ", absl::StrJoin(LongOptions(app), " "),
      "' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ $verb == run ]]; then  # the job's words are not ours\n"
      "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "      [[ ${COMP_WORDS[i]} == -- ]] && return\n"
      "    done\n"
      "  fi\n"
      "  if [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [[ $cur == '=' ]]; then cur=; fi\n"
      "  case $verb:$prev in\n",
      values,
      "  esac\n"
      "  [[ $words ]] || [[ $cur != -* ]] || case $verb in\n",
      cases,
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}\n"
      "complete -o bashdefault -o default -F _lull lull\n");
}

std::string Zsh(const CLI::App& app) {
  auto described = [](absl::string_view name, absl::string_view text) {
    return Quoted(absl::StrCat(absl::StrReplaceAll(name, {{":", "\\:"}}), ":", text));
  };
  auto all_described = [&](const CLI::App& of) {
    std::string list;
    for (const CLI::Option* option : of.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        absl::StrAppend(&list, "      ",
                        described(absl::StrCat("--", name), option->get_description()),
                        "\n");
      }
    }
    return list;
  };
  std::string verbs;
  std::string cases;
  std::string values;
  for (const CLI::App* verb : VerbsOf(app)) {
    const std::string& name = verb->get_name();
    absl::StrAppend(&verbs, "    ", described(name, verb->get_description()), "\n");
    absl::StrAppend(&cases, "    ", name, ") options=(\n", all_described(*verb),
                    "    ) ;;\n");
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_lnames().empty() || !TakesValue(*option)) continue;
      std::string words = Values(*option);
      absl::StrAppend(&values, "    ", name, ":--", option->get_lnames().front(), ") ",
                      words.empty() ? "_default" : absl::StrCat("compadd ", words),
                      "; return ;;\n");
    }
  }
  return absl::StrCat(
      "#compdef lull\n# Made by `lull completion zsh`.\n"
      "_lull() {\n"
      "  local -a verbs options\n"
      "  local verb=$words[2] option=$words[CURRENT-1] dashes=${words[(ie)--]}\n"
      "  if [[ $verb == run ]] && ((dashes < CURRENT)); then  # the job's words\n"
      "    shift $dashes words\n"
      "    ((CURRENT -= dashes))\n"
      "    _normal\n"
      "    return\n"
      "  fi\n"
      "  verbs=(\n",
      verbs,
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    options=(\n",
      all_described(app),
      "    )\n"
      "    if [[ $PREFIX == -* ]]; then\n"
      "      _describe option options\n"
      "    else\n"
      "      _describe verb verbs\n"
      "    fi\n"
      "    return\n"
      "  fi\n"
      "  if [[ $PREFIX == --*=* ]]; then\n"
      "    option=${PREFIX%%=*}\n"
      "    compset -P '*='\n"
      "  fi\n"
      "  case $verb:$option in\n",
      values,
      "  esac\n"
      "  case $verb in\n",
      cases,
      "  esac\n"
      "  if [[ $PREFIX == -* ]]; then\n    _describe option options\n"
      "  else\n    _default\n  fi\n}\n"
      // Found in $fpath the file is the function; else it was sourced.
      "if [[ $funcstack[1] == _lull ]]; then\n  _lull \"$@\"\n"
      "else\n  compdef _lull lull\nfi\n");
}

std::string Fish(const CLI::App& app) {
  std::string script = "# Made by `lull completion fish`.\n";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    absl::StrAppend(&script, "complete -c lull -n __fish_use_subcommand -l ",
                    option->get_lnames().front(), " -d ",
                    Quoted(option->get_description()), "\n");
  }
  for (const CLI::App* verb : VerbsOf(app)) {
    const std::string& name = verb->get_name();
    absl::StrAppend(&script, "complete -c lull -n __fish_use_subcommand -f -a ", name,
                    " -d ", Quoted(verb->get_description()), "\n");
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_lnames().empty()) continue;
      std::string words = Values(*option);
      absl::StrAppend(&script, "complete -c lull -n '__fish_seen_subcommand_from ",
                      name, "' -l ", option->get_lnames().front(),
                      TakesValue(*option) ? " -r" : "",
                      words.empty() ? "" : absl::StrCat(" -f -a '", words, "'"), " -d ",
                      Quoted(option->get_description()), "\n");
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, absl::string_view shell) {
  if (shell == "bash") return Bash(app);
  if (shell == "zsh") return Zsh(app);
  if (shell == "fish") return Fish(app);
  return "";
}

void AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb =
      app.add_subcommand("completion", "Print a shell's completion script");
  verb->group("");  // of the installation; --help has no need of it
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  verb->callback([&app, shell] { Print(CompletionScript(app, *shell)); });
}

}  // namespace lull
