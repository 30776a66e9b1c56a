// A table of text for a terminal: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

class TextTable {
  public:
    explicit TextTable(std::vector<std::string> head) { add(std::move(head)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    /// Set to the right; a last column without a heading holds words, to the left.
    std::string text() const;

  private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep
