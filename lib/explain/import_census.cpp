#include "explain/import_census.hpp"

namespace lockstep {

CensusScript census_script(std::string_view name) {
    if (name == "wide_deep.py" || name == "census_main.py") return {true, 40, 40, 0, "/tmp/census_data", 2};
    if (name == "wide_n_deep_tutorial.py") return {true, 100, 0, 2000, ""};
    return {};
}

bool is_census_file(std::string_view path) {
    const std::string_view name = path.substr(path.find_last_of('/') + 1);
    return name.starts_with("adult.data") || name.starts_with("adult.test");
}

void import_census_columns(bool linear, Imported& config) {
    config.set_text("data.format", "csv", "the raw census files");
    config.set("data.header", "false", "columns are named below");
    config.set_text("data.comment", "|", "the first line of adult.test");
    std::string columns = R"([
  { name = "age",            type = "numeric", wide = false },
  { name = "workclass",      type = "categorical" },
  { name = "fnlwgt",         type = "skip" },
  { name = "education",      type = "categorical" },
  { name = "education_num",  type = "numeric", wide = false },
  { name = "marital_status", type = "categorical" },
  { name = "occupation",     type = "categorical", hash = 1000, embedding = 8 },
  { name = "relationship",   type = "categorical" },
  { name = "race",           type = "skip" },
  { name = "gender",         type = "skip" },
  { name = "capital_gain",   type = "numeric", wide = false },
  { name = "capital_loss",   type = "numeric", wide = false },
  { name = "hours_per_week", type = "numeric", wide = false },
  { name = "native_country", type = "skip" },
  { name = "income_bracket", type = "label", strip = "." },
)";
    if (linear) {
        columns +=
            R"(  { name = "age_buckets", type = "bucket", of = "age", boundaries = [18, 25, 30, 35, 40, 45, 50, 55, 60, 65] },
  { name = "education_x_occupation", type = "cross", of = ["education", "occupation"], hash = 1000 },
  { name = "age_x_education_x_occupation", type = "cross", of = ["age_buckets", "education", "occupation"], hash = 1000 },
)";
    } else {
        config.change("occupation: an embedding of 8 there; mlp reads it as one of 1,000");
    }
    config.set("data.columns", columns + "]", "the tutorial's");
    config.remark(
        "numbers of the census are read as they are, there too: scale = \"standard\" for each helps most optimizers");
}

}  // namespace lockstep
