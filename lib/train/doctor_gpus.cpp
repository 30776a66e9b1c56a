#include "train/doctor_gpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "train/cuda_library.hpp"
#include "train/doctor_findings.hpp"
#include "train/doctor_print.hpp"
#include "train/gpu_choice.hpp"

namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, name, pci, memory_bytes, major, minor, usable)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CudaVersions, driver, runtime, nccl, cublas, cudnn)

void to_json(nlohmann::json& json, const GpuReport& r) {
    json = {{"looked", r.looked},       {"needed", r.needed},     {"fault", r.fault}, {"backend", r.backend},
            {"transport", r.transport}, {"versions", r.versions}, {"gpus", r.gpus}};
}
void from_json(const nlohmann::json& json, GpuReport& r) {
    json.at("looked").get_to(r.looked);
    json.at("needed").get_to(r.needed);
    json.at("fault").get_to(r.fault);
    json.at("backend").get_to(r.backend);
    json.at("transport").get_to(r.transport);
    json.at("versions").get_to(r.versions);
    json.at("gpus").get_to(r.gpus);
}

namespace {

/// As the start of a run would see the rank.
RankDevice as_chosen_from(const RankFacts& rank) {
    RankDevice device;
    device.host = rank.host.name;
    device.nccl = !rank.gpu.versions.nccl.empty();
    for (const GpuFacts& gpu : rank.gpu.gpus) {
        if (gpu.usable) device.visible.push_back(gpu.pci);
    }
    device.gpu = rank.gpu.backend != "cpu" && !device.visible.empty();
    return device;
}

const GpuFacts& gpu_of(const RankFacts& rank, const std::string& pci) {
    return *std::find_if(rank.gpu.gpus.begin(), rank.gpu.gpus.end(), [&](const GpuFacts& g) { return g.pci == pci; });
}

std::string versions_text(const CudaVersions& v) {
    std::string text = fmt::format("CUDA {}", v.runtime);
    if (!v.driver.empty()) text += fmt::format(" (the driver supports {})", v.driver);
    if (!v.cublas.empty()) text += fmt::format(", cuBLAS {}", v.cublas);
    if (!v.cudnn.empty()) text += fmt::format(", cuDNN {}", v.cudnn);
    return text + (v.nccl.empty() ? ", no NCCL" : fmt::format(", NCCL {}", v.nccl));
}

/// One finding for the ranks that have the same reason not to use a GPU.
void tell_faults(const ClusterFacts& facts, Findings& findings) {
    for (const auto& [fault, ranks] : groups_of(facts, [](const RankFacts& rank) { return rank.gpu.fault; })) {
        if (fault.empty()) continue;
        const bool needed = facts.ranks[static_cast<std::size_t>(ranks.front())].gpu.needed;
        findings.push_back(
            {needed ? Severity::kFault : Severity::kNote, "gpu",
             fmt::format("{} would {}: {}", ranks_text(ranks), needed ? "not start" : "compute on the CPU", fault), "",
             ranks});
    }
}

void tell_choice(const ClusterFacts& facts, const std::vector<RankDevice>& devices, Findings& findings) {
    GpuChoice choice;
    std::vector<std::string> taken;
    std::vector<int> on_gpu;
    for (int rank = 0; rank < static_cast<int>(devices.size()); ++rank) {
        const RankDevice& device = devices[static_cast<std::size_t>(rank)];
        const RankFacts& of = facts.ranks[static_cast<std::size_t>(rank)];
        choice = choose_gpu(devices, rank, facts.ranks.front().gpu.transport);  // as training: rank 0's holds
        if (choice.device < 0) continue;
        on_gpu.push_back(rank);
        const std::string& pci = device.visible[static_cast<std::size_t>(choice.device)];
        const GpuFacts& gpu = gpu_of(of, pci);
        taken.push_back(fmt::format("rank {} on {}, {}, at {} of {}", rank, gpu.name, bytes_text(gpu.memory_bytes), pci,
                                    device.host));
    }
    const CudaVersions& versions = facts.ranks[static_cast<std::size_t>(on_gpu.front())].gpu.versions;
    findings.push_back({Severity::kOk, "gpu",
                        fmt::format("{}; {}; sums go {}", fmt::join(taken, "; "), versions_text(versions),
                                    choice.nccl ? "by NCCL" : "through host memory"),
                        "", on_gpu});
    if (choice.warning.empty()) return;
    const bool all = on_gpu.size() == devices.size();
    findings.push_back({Severity::kWarning, "gpu", choice.warning,
                        all ? "start one rank for each GPU" : "give each rank a GPU, or let all compute on CPUs",
                        on_gpu});
}

}  // namespace

GpuReport look_at_gpus(const Config& config) {
    GpuReport report;
    report.backend = config.device.backend;
    report.transport = config.device.transport;
    report.needed = config.device.backend == "cuda" || config.device.arithmetic == "vendor";
    report.looked = report.needed || gpu_may_be_here();
    if (!report.looked) return report;
    try {
        const std::unique_ptr<CudaPlugin> library = load_cuda_library();
        report.versions = library->versions();
        report.gpus = library->devices();
        if (std::none_of(report.gpus.begin(), report.gpus.end(), [](const GpuFacts& g) { return g.usable; })) {
            report.fault = fmt::format("{} is too old", report.gpus.front().name);
        }
    } catch (const Error& e) {
        report.fault = e.what();
    }
    return report;
}

void examine_gpus(const ClusterFacts& facts, Findings& findings) {
    tell_faults(facts, findings);
    std::vector<RankDevice> devices;
    for (const RankFacts& rank : facts.ranks) devices.push_back(as_chosen_from(rank));
    if (std::any_of(devices.begin(), devices.end(), [](const RankDevice& d) { return d.gpu; })) {
        try {
            tell_choice(facts, devices, findings);
        } catch (const Error& e) {
            findings.push_back({Severity::kFault, "gpu", e.what(), "", {}});
        }
        return;
    }
    const bool idle = std::any_of(facts.ranks.begin(), facts.ranks.end(),
                                  [](const RankFacts& rank) { return !rank.gpu.gpus.empty(); });
    const bool told = std::any_of(facts.ranks.begin(), facts.ranks.end(),
                                  [](const RankFacts& rank) { return !rank.gpu.fault.empty(); });
    if (idle && !told) {
        findings.push_back({Severity::kNote, "gpu", "device.backend is \"cpu\": GPUs stay idle", "", {}});
    } else if (!told) {
        findings.push_back({Severity::kOk, "gpu", "no host has an NVIDIA GPU: all ranks compute on CPUs", "", {}});
    }
}

}  // namespace lockstep
