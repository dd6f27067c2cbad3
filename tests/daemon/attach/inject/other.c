// What victims load and unload by themselves.
int other(void) { return 1; }
