// The random generator: its published values, and where seed, purpose, stream, epoch, position and element go.
#include "core/philox.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace lockstep {
namespace {

TEST_CASE("Philox 4x32-10 gives the known answers of Random123", "[philox]") {
    struct Known {
        PhiloxCounter counter;
        PhiloxKey key;
        PhiloxCounter result;
    };
    const Known table[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (const Known& known : table) CHECK(philox4x32(known.counter, known.key) == known.result);
}

TEST_CASE("a stream's key depends on seed, purpose, stream and epoch, on all their bits", "[philox]") {
    const uint64_t high = uint64_t{1} << 63;
    const std::set<PhiloxKey> keys = {
        RandomStream(1, Purpose::kDropout).key(),       RandomStream(1 | high, Purpose::kDropout).key(),
        RandomStream(2, Purpose::kDropout).key(),       RandomStream(1, Purpose::kInitialWeights).key(),
        RandomStream(1, Purpose::kDropout, 1).key(),    RandomStream(1, Purpose::kDropout, high).key(),
        RandomStream(1, Purpose::kDropout, 0, 1).key(), RandomStream(1, Purpose::kDropout, 1, 1).key(),
        RandomStream(1, Purpose::kAugmentation).key(),
    };
    CHECK(keys.size() == 9);
    CHECK(RandomStream(1, Purpose::kDropout).key() == RandomStream(1, Purpose::kDropout, 0, 0).key());
}

TEST_CASE("a stream's key and blocks stand where the header says", "[philox]") {
    const RandomStream stream(0x0123456789abcdef, Purpose::kDropout, 0x1122334455667788, 9);
    const PhiloxCounter made = philox4x32({3, 0x55667788, 0x11223344, 9}, {0x89abcdef, 0x01234567});
    CHECK(stream.key() == PhiloxKey{made[0], made[1]});
    const uint64_t block = 0xaaaaaaaabbbbbbbb;
    const uint64_t position = 0xccccccccdddddddd;
    CHECK(stream.block(block, position) == philox4x32({0xbbbbbbbb, 0xaaaaaaaa, 0xdddddddd, 0xcccccccc}, stream.key()));
    for (uint64_t element = 0; element < 12; ++element) {
        CHECK(stream.bits(element, 5) == stream.block(element / 4, 5)[element % 4]);
    }
}

TEST_CASE("a name's stream number is FNV-1a of 64 bits", "[philox]") {
    CHECK(stream_id("") == 0xcbf29ce484222325);
    CHECK(stream_id("a") == 0xaf63dc4c8601ec8c);
    CHECK(stream_id("foobar") == 0x85944171f73967e8);
    CHECK(stream_id("fc1.weight") != stream_id("fc1.bias"));
}

}  // namespace
}  // namespace lockstep
