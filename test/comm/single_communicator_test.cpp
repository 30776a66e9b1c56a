// The communicator of one rank: the same calls as any other, with nobody to talk to.
#include <catch2/catch.hpp>

#include "comm/communicator.hpp"
#include "core/error.hpp"

using namespace lockstep;

TEST_CASE("a world of one rank has collectives and no peers") {
    const auto comm = make_single_communicator();
    CHECK(comm->rank() == 0);
    CHECK(comm->size() == 1);
    CHECK(comm->local_rank() == 0);
    CHECK(comm->local_size() == 1);
    comm->barrier();
    CHECK(comm->broadcast(0, "text") == "text");
    CHECK(comm->all_gather(std::string("text")) == std::vector<std::string>{"text"});
    std::vector<float> values{1, 2};
    comm->all_reduce_native(values);
    CHECK(values == std::vector<float>{1, 2});
    CHECK_THROWS_AS(comm->send(0, 1, 0, {}), Error);
}
