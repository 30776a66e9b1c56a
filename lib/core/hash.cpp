#include "core/hash.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the same values by the widest vectors that this CPU has: 1.5 to 2.5 times as fast
#endif

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.hpp"

namespace lockstep {
namespace {

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// OpenSSL reports failure by 0; only a broken installation (no SHA-256 provider) or a lack of memory leads here.
void check_openssl(int ok) {
    if (ok != 1) fail(ErrorKind::kRuntime, "OpenSSL cannot compute SHA-256 (its default provider did not load)");
}

struct OpenFile {
    explicit OpenFile(const std::string& path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~OpenFile() {
        if (descriptor >= 0) ::close(descriptor);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    int descriptor;
};

}  // namespace

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
    bool ended = false;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    check_openssl(state_->context && EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
    if (state_->ended) fail(ErrorKind::kRuntime, "a SHA-256 computation was continued after its end");
    check_openssl(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
    if (state_->ended) fail(ErrorKind::kRuntime, "a SHA-256 computation was ended twice");
    state_->ended = true;
    std::array<unsigned char, 32> digest{};
    check_openssl(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr));
    std::string text;
    text.reserve(2 * digest.size());
    for (const unsigned char byte : digest) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    return text;
}

std::string sha256_of_file(const std::string& path) {
    const OpenFile file(path);
    if (file.descriptor < 0) fail(ErrorKind::kData, "cannot open {}: {}", path, std::strerror(errno));
    Sha256 hash;
    std::vector<std::byte> buffer(size_t{1} << 18);
    for (;;) {
        const ssize_t count = ::read(file.descriptor, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(ErrorKind::kData, "cannot read {}: {}", path, std::strerror(errno));
        if (count == 0) return hash.hex();
        hash.update(std::span(buffer).first(static_cast<size_t>(count)));
    }
}

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string hex16(uint64_t value) {
    return fmt::format("{:016x}", value);
}

}  // namespace lockstep
