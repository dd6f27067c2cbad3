// What a program of another libc (musl) does with the functions that lull has hooks
// for: it waits, forks, and asks the loader. Built by the test, once as a library with
// -DLIBRARY.
//
//   other_libc LIBRARY
#define _GNU_SOURCE
#ifdef LIBRARY
int cudaDeviceSynchronize(void) { return 42; }
#else
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t begun;

static void* work(void* unused) {
  struct timespec millisecond = {0, 1000000};
  sem_post(&begun);
  for (int i = 0; i < 20; ++i) nanosleep(&millisecond, NULL);
  return unused;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  pthread_t threads[4];
  sem_init(&begun, 0, 0);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; ++i) sem_wait(&begun);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);

  int ends[2];
  if (pipe(ends) != 0) return 3;
  pid_t child = fork();
  if (child == 0) _exit(write(ends[1], "x", 1) == 1 ? 5 : 6);
  struct pollfd readable = {ends[0], POLLIN, 0};
  int status = 0;
  if (poll(&readable, 1, 5000) != 1 || waitpid(child, &status, 0) != child) return 4;
  printf("child %d\n", WEXITSTATUS(status));

  void* library = dlopen(arguments[1], RTLD_NOW);
  int (*synchronize)(void) = NULL;
  if (library != NULL) synchronize = dlsym(library, "cudaDeviceSynchronize");
  if (synchronize == NULL) return 7;
  printf("library %d\n", synchronize());
  printf("next %s\n", dlsym(RTLD_NEXT, "getpid") != NULL ? "found" : "missing");
  printf("none %s\n",
         dlsym(RTLD_DEFAULT, "no_such_function") == NULL ? "missing" : "found");
  return dlclose(library) == 0 ? 9 : 8;
}
#endif
