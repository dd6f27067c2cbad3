// A library whose constructor has the program make a CUDA call on another thread, and
// waits for it. The loader's lock is held meanwhile.
void constructor_waits_for_a_call(void);

__attribute__((constructor)) static void initialise(void) {
  constructor_waits_for_a_call();
}
