// How a stack of backward work lies in a list of frames, from the relay to the reports:
//
//   the node            "ConvolutionBackward0", or "" where it is not known
//   who called backward()  as in any Python stack, innermost first; may be nobody
//   "(forward)"         and behind it whose operator made the node; both may be missing
//
// Frames that are not code have a module that no object has.
#pragma once

namespace lull {

inline constexpr char kNodeModule[] = "<node>";
inline constexpr char kForwardModule[] = "<forward>";
// The function of a site whose node is not known.
inline constexpr char kUnknownNode[] = "(backward)";
inline constexpr char kForwardFunction[] = "(forward)";

}  // namespace lull
