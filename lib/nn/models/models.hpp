// The models of the zoo, each a function that appends its layers. Which name and flavor gives which of them stands in
// nn/zoo.cpp.
#pragma once

#include "nn/builder.hpp"

namespace lockstep {

void build_trivial(Builder& builder);
void build_logistic(Builder& builder);
void build_mlp(Builder& builder);
void build_wide_deep(Builder& builder);
void build_lenet(Builder& builder);
void build_alexnet(Builder& builder);
void build_vgg11(Builder& builder);
void build_vgg16(Builder& builder);
void build_googlenet(Builder& builder);

// Residual networks of large pictures. Of the bottlenecks, v1 strides in the first 1x1 convolution, v1.5 in the 3x3.
void build_resnet18(Builder& builder);
void build_resnet34(Builder& builder);
void build_resnet50(Builder& builder);  // v1.5, but v1 in flavor tf
void build_resnet50_v1(Builder& builder);
void build_resnet50_v1_5(Builder& builder);

// Those of CIFAR, with 3, 5, 7 and 9 blocks a stage.
void build_resnet20(Builder& builder);
void build_resnet32(Builder& builder);
void build_resnet44(Builder& builder);
void build_resnet56(Builder& builder);

}  // namespace lockstep
