// How often samples of each class were taken for each class: counts, so that their sums have no order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

class Confusion {
  public:
    explicit Confusion(int classes)
        : classes_(classes), counts_(static_cast<std::size_t>(classes) * static_cast<std::size_t>(classes)) {}

    void add(int32_t label, int predicted) { ++counts_[at(label, predicted)]; }
    void add(std::span<const int64_t> counts);
    int64_t count(int label, int predicted) const { return counts_[at(label, predicted)]; }
    /// [label][predicted].
    const std::vector<int64_t>& counts() const { return counts_; }

    /// Of samples predicted as the class the share that are of it, and of samples of the class the share so predicted.
    /// NaN of none.
    double precision(int of) const;
    double recall(int of) const;

  private:
    std::size_t at(int label, int predicted) const {
        return static_cast<std::size_t>(label) * static_cast<std::size_t>(classes_) +
               static_cast<std::size_t>(predicted);
    }

    int classes_;
    std::vector<int64_t> counts_;
};

/// The class of the largest value, the first of equal ones.
int largest_class(std::span<const float> values);

/// As a table for people: a row for each label, a column for each prediction; of many classes the most frequent
/// confusions alone.
std::string confusion_text(std::span<const int64_t> counts);
/// [[row of label 0], …].
std::string confusion_json(std::span<const int64_t> counts);

}  // namespace lockstep
