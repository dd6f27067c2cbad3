// Two runtimes in one process: a library linked against libcudart.so.12 and one
// against libcudart.so.13 take turns. They share the driver.
extern "C" void part12();
extern "C" void part13();

int main() {
  part12();
  part13();
  part12();
  return 0;
}
