#include "cli/top/terminal.h"

#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/top/terminal_descriptions.h"

// ncurses's macros of these names are in the way.
#undef lines
#undef columns

namespace lull {
namespace {

// Readable input without a key, so often in a row, is the end of the input.
constexpr int kMostEmptyReads = 20;

bool WantsUnicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = getenv(name);
    if (value == nullptr || *value == 0) continue;
    return absl::EndsWithIgnoreCase(value, "UTF-8") ||
           absl::EndsWithIgnoreCase(value, "UTF8");
  }
  return false;
}

// Has the system a description of it?
bool IsKnown(const char* terminal) {
  int error = 0;
  if (setupterm(terminal, STDOUT_FILENO, &error) != OK) return false;
  del_curterm(cur_term);
  return true;
}

// The name to open the terminal by; "" if nobody knows it.
std::string NameOf(const std::string& terminal) {
  if (IsKnown(terminal.c_str())) return terminal;
  const char* description = BuiltInTerminal(terminal);
  if (description == nullptr) return "";
  setenv("TERMINFO", description, 1);
  return IsKnown(terminal.c_str()) ? terminal : "";
}

attr_t AttributesOf(TopStyle style) {
  switch (style) {
    case TopStyle::kTitle:
      return A_BOLD;
    case TopStyle::kHeading:
      return A_REVERSE;
    case TopStyle::kChosen:
      return A_BOLD;
    case TopStyle::kDim:
      return A_DIM;
    case TopStyle::kWarning:
      return A_BOLD | (has_colors() ? COLOR_PAIR(1) : 0);
    case TopStyle::kPlain:
      return A_NORMAL;
  }
  return A_NORMAL;
}

// For terminals without UTF-8: what is not ASCII becomes '?', an arrow "->".
std::string Ascii(const std::string& text) {
  std::string ascii;
  for (char c : absl::StrReplaceAll(text, {{"→", "->"}, {"±", "+-"}})) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      ascii += c;
    } else if (byte >= 0xC0) {  // the first byte of a character
      ascii += '?';
    }
  }
  return ascii;
}

// As wide characters; a byte that is no part of one becomes '?'.
std::wstring Wide(const std::string& text) {
  std::wstring wide;
  mbstate_t state = {};
  for (size_t at = 0; at < text.size();) {
    wchar_t one = 0;
    const size_t length = mbrtowc(&one, text.data() + at, text.size() - at, &state);
    if (length == 0 || length > text.size() - at) {
      wide += L'?';
      state = {};
      ++at;
    } else {
      wide += one;
      at += length;
    }
  }
  return wide;
}

// As much of it as has room in `columns`.
void DrawText(int row, std::wstring text, int columns) {
  int used = 0;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const int width = wcwidth(text[end]);
    if (width < 0) text[end] = L'?';
    used += width < 0 ? 1 : width;
    if (used > columns) break;
  }
  mvaddnwstr(row, 0, text.c_str(), static_cast<int>(end));
}

}  // namespace

TopTerminal::~TopTerminal() {
  if (screen_ == nullptr) return;
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

absl::Status TopTerminal::Open(bool colour) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    return absl::FailedPreconditionError(
        "stdin and stdout must be a terminal; `lull top --once` prints one picture, "
        "`lull report` all there is");
  }
  const char* variable = getenv("TERM");
  const std::string terminal = variable != nullptr ? variable : "";
  const std::string name = NameOf(terminal);
  if (name.empty() || terminal == "dumb") {
    return absl::FailedPreconditionError(absl::StrCat(
        "the terminal '", terminal,
        "' ($TERM) is not known here; try TERM=xterm or `lull top --once`"));
  }
  unicode_ = WantsUnicode() && setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  SCREEN* screen = newterm(name.c_str(), stdout, stdin);
  if (screen == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the terminal '", terminal, "' cannot show a screen of text"));
  }
  screen_ = screen;
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  set_escdelay(25);
  if (colour && has_colors()) {
    start_color();
    use_default_colors();
    init_pair(1, COLOR_RED, -1);
  }
  return absl::OkStatus();
}

size_t TopTerminal::rows() const { return static_cast<size_t>(std::max(1, LINES)); }

size_t TopTerminal::columns() const { return static_cast<size_t>(std::max(1, COLS)); }

void TopTerminal::Draw(const std::vector<TopLine>& lines) {
  erase();
  int row = 0;
  for (const TopLine& line : lines) {
    if (row >= LINES) break;
    const attr_t attributes = AttributesOf(line.style);
    attrset(attributes);
    DrawText(row++, Wide(unicode_ ? line.text : Ascii(line.text)), COLS);
  }
  attrset(A_NORMAL);
  refresh();
}

int TopTerminal::ReadKey(absl::Duration patience) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  const int ready =
      poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(patience)));
  if (ready > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return kGone;
  const int key = getch();  // also sees that the size has changed
  if (key == ERR) {
    reads_without_key_ = ready > 0 ? reads_without_key_ + 1 : 0;
    return reads_without_key_ > kMostEmptyReads ? kGone : 0;
  }
  reads_without_key_ = 0;
  switch (key) {
    case KEY_UP:
      return 'k';
    case KEY_DOWN:
      return 'j';
    case KEY_RESIZE:
      return 0;
    default:
      return key;
  }
}

}  // namespace lull
