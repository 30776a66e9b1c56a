// The example scripts that come with Horovod: what they do where the command line says nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

enum class HorovodData { kUnknown, kImageNet, kMnist, kCifar, kMadeUp };

struct HorovodScript {
    std::string_view name{};  // "" of a script that is none of them
    HorovodData data = HorovodData::kUnknown;
    std::string_view network{};  // of torchvision's; "" where it is the script's own
    std::string_view layers{};   // of that, as a config has them; "" where no config can say it
    int64_t batch = 32;          // of a worker
    int64_t epochs = 90;         // 0: steps
    int64_t steps = 0;           // divided by the number of workers there
    int64_t rounds = 1;          // of so many steps each, each divided alone
    std::string_view optimizer = "momentum";
    double lr = 0.0125;  // of one worker, times their number
    double momentum = 0.9;
    double decay = 0;
    double warmup = 0;          // epochs
    bool falls = false;         // to a tenth after 30, 60 and 80 epochs
    bool keras = false;         // decay is twice its number, in the loss; adam's epsilon is 1e-7
    bool scales_lr = true;      // with the number of workers
    int64_t cosine_epochs = 0;  // the rate follows a cosine of so many
};

/// By the script's file name, with or without "_elastic".
HorovodScript horovod_script(std::string_view name);

/// The ImageNet examples', of whose flags most are only theirs.
HorovodScript horovod_imagenet();

}  // namespace lockstep
