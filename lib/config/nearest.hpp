// The word somebody meant: the nearest by edit distance, if it is near enough to be worth naming.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment), case ignored.
size_t edit_distance(std::string_view left, std::string_view right);

/// Of those that begin with the word (of 3 letters and more) the shortest; else the nearest, "" if none is within a
/// third of the word's length (at least 2, at most half).
std::string nearest(std::string_view word, const std::vector<std::string>& words);

/// The config key that an unknown one is nearest to, as a whole or by its last part (lr -> optimizer.lr). "" if none is
/// near.
std::string nearest_key(std::string_view name);

/// "; did you mean X?" or "".
std::string did_you_mean(const std::string& suggestion);

}  // namespace lockstep
