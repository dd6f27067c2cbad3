#include "tests/preload/interpreters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "daemon/attach/examine/python_versions.h"

namespace lull::testing {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string output_of(const std::string& command) {
  std::string output;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    for (int c = getc(pipe); c != EOF; c = getc(pipe)) output += static_cast<char>(c);
    pclose(pipe);
  }
  return output;
}

// What pyenv has: of those, the PATH holds only slow launchers.
std::vector<std::string> in_pyenv() {
  std::vector<std::string> files;
  std::string found = output_of(
      "root=$(pyenv root 2>/dev/null) && ls -d \"$root\"/versions/*/bin/python3.* "
      "2>/dev/null");
  for (const std::string& file : split(found, '\n')) files.push_back(file);
  return files;
}

// 11 for ".../python3.11", 0 for other names.
int minor_in(const std::string& path) {
  size_t at = path.rfind("/python3.");
  if (at == std::string::npos) return 0;
  std::string digits = path.substr(at + 9);
  return digits.find_first_not_of("0123456789") == std::string::npos
             ? atoi(digits.c_str())
             : 0;
}

std::vector<std::string> candidates() {
  if (const char* named = getenv("LULL_TEST_PYTHONS")) return split(named, ':');
  std::vector<std::string> names;
  for (const std::string& file : in_pyenv()) {
    if (int minor = minor_in(file);
        minor >= attach::kOldestPythonMinor && minor <= attach::kNewestPythonMinor)
      names.push_back(file);
  }
  const char* path = getenv("PATH");
  for (int minor = attach::kOldestPythonMinor; minor <= attach::kNewestPythonMinor;
       ++minor) {
    for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
      std::string file = folder + "/python3." + std::to_string(minor);
      if (access(file.c_str(), X_OK) == 0) names.push_back(file);
    }
  }
  return names;
}

}  // namespace

Outcome run_script(const std::string& interpreter, const std::string& script,
                   const std::vector<std::string>& arguments,
                   const std::vector<std::string>& environment) {
  char out[] = "/tmp/lull_test_outXXXXXX";
  char err[] = "/tmp/lull_test_errXXXXXX";
  int out_fd = mkstemp(out);
  int err_fd = mkstemp(err);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(out_fd, STDOUT_FILENO);
    dup2(err_fd, STDERR_FILENO);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    for (const std::string& entry : environment) putenv(strdup(entry.c_str()));
    std::vector<char*> argv = {strdup(interpreter.c_str()), strdup(script.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(strdup(argument.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  Outcome outcome{};
  waitpid(pid, &outcome.status, 0);
  close(out_fd);
  close(err_fd);
  outcome.output = read_file(out);
  outcome.errors = read_file(err);
  unlink(out);
  unlink(err);
  return outcome;
}

const std::vector<Interpreter>& interpreters() {
  static const std::vector<Interpreter> found = [] {
    std::vector<Interpreter> result;
    std::set<std::string> seen;
    for (const std::string& path : candidates()) {
      if (int minor = minor_in(path); seen.count("3." + std::to_string(minor)))
        continue;
      Outcome outcome = run_script(
          path, "-c",
          {"import sys, ctypes; print('%d.%d' % sys.version_info[:2], sys.executable)"},
          {});
      std::vector<std::string> words = split(outcome.output, ' ');
      if (outcome.status != 0 || words.size() != 2) continue;
      if (!seen.insert(words[0]).second) continue;
      words[1].pop_back();  // the end of the line
      result.push_back({words[1], words[0]});
    }
    return result;
  }();
  return found;
}

}  // namespace lull::testing
