#include "nn/layer_table.hpp"

#include <algorithm>

namespace lockstep {

std::pair<int, int> LayerTable::pair(std::string_view key, std::pair<int, int> otherwise) const {
    const auto values = integers(key);
    if (!values) return otherwise;
    if (values->empty() || values->size() > 2) {
        refuse(fmt::format("{} must be a number or [height, width], got {} numbers", key, values->size()));
    }
    return {static_cast<int>(values->front()), static_cast<int>(values->back())};
}

Window LayerTable::window(Window::Border border, bool steps_of_kernel) const {
    need("kernel");
    Window window;
    window.border = border;
    std::tie(window.kernel_h, window.kernel_w) = pair("kernel", {1, 1});
    const std::pair<int, int> steps = steps_of_kernel ? std::pair(window.kernel_h, window.kernel_w) : std::pair(1, 1);
    std::tie(window.stride_h, window.stride_w) = pair("stride", steps);
    std::tie(window.dilation_h, window.dilation_w) = pair("dilation", {1, 1});
    const std::optional<std::string> padding = text("padding");
    if (padding) window.border = *padding == "same" ? Window::Border::kSame : Window::Border::kValid;
    if (const auto pad = integers("pad")) {
        if (padding) refuse("padding and pad are both set; set one");
        if (pad->size() != 1 && pad->size() != 4) {
            refuse(fmt::format("pad must be a number or [top, bottom, left, right], got {} numbers", pad->size()));
        }
        window.border = Window::Border::kGiven;
        window.top = static_cast<int>(pad->front());
        window.bottom = static_cast<int>((*pad)[pad->size() == 4 ? 1 : 0]);
        window.left = static_cast<int>((*pad)[pad->size() == 4 ? 2 : 0]);
        window.right = static_cast<int>(pad->back());
    }
    return window;
}

void LayerTable::check_keys(std::string_view legal) const {
    for (const auto& [key, value] : table_.entries) {
        const std::string bounded = fmt::format(" {} ", key);
        const bool known = key == "kind" || key == "name" || key == "from" ||
                           fmt::format(" {} ", legal).find(bounded) != std::string::npos;
        if (known) continue;
        refuse(fmt::format("a {} has no {}; it has: name, from{}{}", kind_, key, legal.empty() ? "" : " ", legal));
    }
}

}  // namespace lockstep
