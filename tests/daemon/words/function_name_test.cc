#include "daemon/words/function_name.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(ShortFunction, LeavesOutWhatDoesNotSayWhichFunction) {
  EXPECT_EQ(ShortFunction("step(float*, float*, int)"), "step");
  EXPECT_EQ(ShortFunction("(anonymous namespace)::step(float*, CUstream_st*)"), "step");
  EXPECT_EQ(ShortFunction("net::(anonymous namespace)::Trainer::step(int) const"),
            "net::Trainer::step");
  EXPECT_EQ(ShortFunction("main"), "main");
  EXPECT_EQ(ShortFunction("copy(Tensor&) const &"), "copy");
  EXPECT_EQ(ShortFunction("step(int) [clone .isra.0]"), "step");
  EXPECT_EQ(ShortFunction("outer(int)::Local::run(char)"), "outer::Local::run");
}

TEST(ShortFunction, KeepsShortArgumentsOfTemplates) {
  EXPECT_EQ(ShortFunction("void fill<float>(float*, float, int)"), "fill<float>");
  EXPECT_EQ(ShortFunction("cudaError run<(anonymous namespace)::Very::Long<int>>(int)"),
            "run<...>");
  EXPECT_EQ(ShortFunction("std::enable_if<is_invocable_r_v<void, F&, int>, void>::type "
                          "ns::call<int>(F&)"),
            "ns::call<int>");
  EXPECT_EQ(
      ShortFunction("Trainer<float>::step(std::vector<int, std::allocator<int> >)"),
      "Trainer<float>::step");
}

TEST(ShortFunction, NamesLambdasByWhereTheyStand) {
  EXPECT_EQ(ShortFunction("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda#1}");
  EXPECT_EQ(ShortFunction("train(Net&)::{lambda()#2}::operator()() const"),
            "train::{lambda#2}");
  EXPECT_EQ(ShortFunction("std::_Function_handler<void (int), "
                          "main::{lambda(int)#1}>::_M_invoke(std::_Any_data const&)"),
            "main::{lambda#1}");
  EXPECT_EQ(ShortFunction("std::thread::_State_impl<std::thread::_Invoker<std::tuple<"
                          "main::{lambda()#3}> > >::_M_run()"),
            "main::{lambda#3}");
  EXPECT_EQ(ShortFunction("operator()"), "operator()");
}

TEST(ShortFunction, KnowsOperators) {
  EXPECT_EQ(ShortFunction("Functor::operator()(float) const"), "Functor::operator()");
  EXPECT_EQ(ShortFunction("ns::operator<<(std::ostream&, int)"), "ns::operator<<");
  EXPECT_EQ(ShortFunction("bool operator< <int>(int, int)"), "operator< <int>");
  EXPECT_EQ(ShortFunction("Tensor::operator bool() const"), "Tensor::operator bool");
  EXPECT_EQ(ShortFunction("operator new(unsigned long)"), "operator new");
}

TEST(ShortFunction, LeavesOtherNamesAlone) {
  for (const char* name :
       {"Trainer.step", "<module>", "train.<locals>.<lambda>", "f.<locals>.g", "",
        "libstdc++.so.6.0.30+0xd44a2", "(unknown)", "(allocated before lull came)",
        "<T as core::fmt::Display>::fmt", "SelectBackward0", "_start"}) {
    EXPECT_EQ(ShortFunction(name), name);
  }
}

TEST(ShortFunction, TakesWhateverAJobMayCallAFunction) {
  for (const char* name :
       {"a(", "a<", "a<b(", "a)", "a>", "f(<", "{lambda(", "a{lambda(",
        "std::f<{lambda(", "operator", "a operator", "x()::", "((", "a->b",
        "a<b->c>(d)", " ", "a b(", "std::x<>{lambda(>"}) {
    EXPECT_FALSE(ShortFunction(name).empty()) << name;
  }
}

}  // namespace
}  // namespace lull
