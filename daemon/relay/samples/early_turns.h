#pragma once

namespace lull::relay {

// On a full machine whoever waits for its turn gets one when a target sleeps, and sees
// it asleep too often. A thread that asks for shorter slices gets its turn earlier: no
// more time than others, and no right is needed. From Linux 6.12; elsewhere nothing
// changes.
void AskForEarlyTurns();

}  // namespace lull::relay
