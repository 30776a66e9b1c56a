// Numbers as the shortest decimals that read back to the same bits in their own type, in JSON's spelling.
#pragma once

#include <string>

namespace lockstep {

std::string json_number(float value);  // 0.05f -> "0.05"; whole values get ".0"; NaN and infinities -> "null"
std::string json_number(double value);
std::string json_string(const std::string& text);  // quoted and escaped

}  // namespace lockstep
