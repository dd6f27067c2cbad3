// One CUDA call, and the end.
int cudaFree(void* block);

int main(void) { return cudaFree(0); }
