// Waits without an end of their own: one for each way in which the kernel ends a call
// of a thread that is stopped. Each must end when, and only when, the test says so.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/daemon/attach/inject/victim.h"

namespace {

constexpr timespec kHour = {3600, 0};

int ends[2];   // a pipe
int socks[2];  // a pair of sockets with time limits of an hour
int listener;  // a socket with the same
// The system's own numbers: each is removed as what it is, or a semaphore's victim removes
// the queue of another.
int semaphore = -1;
int queue = -1;
int child;
char folder[64];  // of its own
pthread_t waiter;
std::atomic<int> word;  // for futexes

std::string InFolder(const char* name) { return std::string(folder) + "/" + name; }

void LimitTimes(int fd) {
  timeval hour = {3600, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof(hour));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &hour, sizeof(hour));
}

bool Prepare() {
  char pattern[] = "/tmp/lull_blocked_XXXXXX";
  if (mkdtemp(pattern) == nullptr) return false;
  strcpy(folder, pattern);
  if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, socks) != 0) return false;
  LimitTimes(socks[0]);
  sockaddr_un address = {AF_UNIX, ""};
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  LimitTimes(listener);
  return bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) ==
             0 &&
         listen(listener, 0) == 0;
}

void WritePipe() { Count(write(ends[1], "x", 1) == 1, errno); }
void WriteSocket() { Count(write(socks[1], "x", 1) == 1, errno); }
// Again, should it come before the wait has been begun (again).
void Signal() {
  do {
    pthread_kill(waiter, SIGUSR1);
    usleep(10'000);
  } while (page->rounds == 0);
}

bool GotByte(ssize_t result, const char& byte) { return result == 1 && byte == 'x'; }

bool Read() {
  char byte = 0;
  return GotByte(read(ends[0], &byte, 1), byte);
}
bool ReadV() {
  char byte = 0;
  iovec part = {&byte, 1};
  return GotByte(readv(ends[0], &part, 1), byte);
}
bool ReadVSocket() {
  char byte = 0;
  iovec part = {&byte, 1};
  return GotByte(readv(socks[0], &part, 1), byte);
}
bool ReadSocket() {
  char byte = 0;
  return GotByte(read(socks[0], &byte, 1), byte);
}
bool Receive() {
  char byte = 0;
  return GotByte(recv(socks[0], &byte, 1, 0), byte);
}
bool ReceiveMessage() {
  char byte = 0;
  iovec part = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return GotByte(recvmsg(socks[0], &message, 0), byte);
}
bool ReceiveMessages() {
  char byte = 0;
  iovec part = {&byte, 1};
  mmsghdr message = {};
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  timespec hour = kHour;
  return recvmmsg(socks[0], &message, 1, 0, &hour) == 1 && byte == 'x';
}

// Fills what the other end does not read, so that one byte more has to wait.
void Fill(int fd) {
  char bytes[4096] = {};
  while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
}
bool SendOne() {
  Fill(socks[0]);
  return send(socks[0], "x", 1, 0) == 1;
}
void DrainSocket() {
  char bytes[4096];
  while (recv(socks[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
}

sockaddr_un ListenersAddress(socklen_t* size) {
  sockaddr_un address = {};
  *size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), size);
  return address;
}
bool ConnectNow() {
  socklen_t size;
  sockaddr_un address = ListenersAddress(&size);
  int client = socket(AF_UNIX, SOCK_STREAM, 0);
  LimitTimes(client);
  return connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0;
}
bool ConnectBehindAnother() { return ConnectNow() && ConnectNow(); }
bool Accept() { return accept(listener, nullptr, nullptr) >= 0; }
void AcceptOne() { Count(Accept(), errno); }
void ConnectOne() { Count(ConnectNow(), errno); }

bool Poll() {
  pollfd one = {ends[0], POLLIN, 0};
  return poll(&one, 1, -1) == 1;
}
bool PollAnHour() {
  pollfd one = {ends[0], POLLIN, 0};
  return poll(&one, 1, 3600'000) == 1;
}
// The kernel does not begin this one again itself: it cannot note the time that is
// left.
bool PollUntilReadOnlyTime() {
  void* place =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(place, &kHour, sizeof(kHour));
  mprotect(place, 4096, PROT_READ);
  pollfd one = {ends[0], POLLIN, 0};
  return syscall(SYS_ppoll, &one, 1, place, nullptr, 0) == 1;
}
bool Select() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  timeval hour = {3600, 0};
  return select(ends[0] + 1, &set, nullptr, nullptr, &hour) == 1;
}
bool PSelect() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  sigset_t none;
  sigemptyset(&none);
  return pselect(ends[0] + 1, &set, nullptr, nullptr, &kHour, &none) == 1;
}

int EpollOfPipe() {
  int epoll = epoll_create1(0);
  epoll_event event = {EPOLLIN, {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  return epoll;
}
bool Epoll() {
  epoll_event event;
  return epoll_wait(EpollOfPipe(), &event, 1, -1) == 1;
}
bool EpollPWait() {
  epoll_event event;
  sigset_t none;
  sigemptyset(&none);
  return epoll_pwait(EpollOfPipe(), &event, 1, 3600'000, &none) == 1;
}
bool EpollPWait2() {
  constexpr long kEpollPWait2 = 441;
  epoll_event event;
  int epoll = EpollOfPipe();
  long got = syscall(kEpollPWait2, epoll, &event, 1, &kHour, nullptr, 0);
  if (got < 0 && errno == ENOSYS) return Poll();
  return got == 1;
}

// The word has changed: the waker came before the wait had been begun (again).
bool Futex(int operation, const timespec* limit, unsigned bits) {
  return syscall(SYS_futex, &word, operation, 0, limit, nullptr, bits) == 0 ||
         (errno == EAGAIN && word != 0);
}
bool FutexWait() { return Futex(FUTEX_WAIT_PRIVATE, nullptr, 0); }
bool FutexWaitAnHour() { return Futex(FUTEX_WAIT_PRIVATE, &kHour, 0); }
bool FutexWaitBits() { return Futex(FUTEX_WAIT_BITSET_PRIVATE, nullptr, ~0u); }
void FutexWake() {
  word = 1;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// These two end by a signal with a handler, as they do without us.
bool Sleep() { return nanosleep(&kHour, nullptr) == -1 && errno == EINTR; }
bool SleepUntil() {
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 3600;
  return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR;
}
bool Pause() { return pause() == -1 && errno == EINTR; }
bool SigSuspend() {
  sigset_t none;
  sigemptyset(&none);
  return sigsuspend(&none) == -1 && errno == EINTR;
}

sigset_t Usr1Blocked() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}
bool SigWait() {
  sigset_t set = Usr1Blocked();
  int signal = 0;
  return sigwait(&set, &signal) == 0 && signal == SIGUSR1;
}
bool SigWaitInfo() {
  sigset_t set = Usr1Blocked();
  return sigwaitinfo(&set, nullptr) == SIGUSR1;
}
bool SigTimedWait() {
  sigset_t set = Usr1Blocked();
  return sigtimedwait(&set, nullptr, &kHour) == SIGUSR1;
}

// A child that lives until its input ends.
void Beget() {
  child = fork();
  if (child != 0) return;
  close(ends[1]);
  char byte;
  _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
}
bool Wait4() {
  Beget();
  return wait4(child, nullptr, 0, nullptr) == child;
}
bool WaitId() {
  Beget();
  siginfo_t info;
  return waitid(P_PID, child, &info, WEXITED) == 0;
}
void ClosePipe() { Count(close(ends[1]) == 0, errno); }

// A lock of another's, which is given back.
int LockOfAnother() {
  ends[1] = open(InFolder("lock").c_str(), O_RDWR | O_CREAT, 0600);
  flock(ends[1], LOCK_EX);
  return open(InFolder("lock").c_str(), O_RDWR);
}
bool FLock() { return flock(LockOfAnother(), LOCK_EX) == 0; }
void FUnlock() { flock(ends[1], LOCK_UN); }
bool RecordLock() {
  struct flock all = {};
  all.l_type = F_WRLCK;
  ends[1] = open(InFolder("lock").c_str(), O_RDWR | O_CREAT, 0600);
  fcntl(ends[1], F_OFD_SETLK, &all);
  return fcntl(open(InFolder("lock").c_str(), O_RDWR), F_OFD_SETLKW, &all) == 0;
}
bool OpenFifo() {
  mkfifo(InFolder("fifo").c_str(), 0600);
  return open(InFolder("fifo").c_str(), O_RDONLY) >= 0;
}
void OpenOtherEnd() {
  ends[1] = open(InFolder("fifo").c_str(), O_WRONLY);
  Count(ends[1] >= 0, errno);
}

bool SemaphoreOnce(const timespec* limit) {
  semaphore = semget(IPC_PRIVATE, 1, 0600);
  sembuf less = {0, -1, 0};
  return (limit == nullptr ? semop(semaphore, &less, 1)
                           : semtimedop(semaphore, &less, 1, limit)) == 0;
}
bool Semaphore() { return SemaphoreOnce(nullptr); }
bool SemaphoreAnHour() { return SemaphoreOnce(&kHour); }
void SemaphoreUp() {
  sembuf more = {0, 1, 0};
  Count(semop(semaphore, &more, 1) == 0, errno);
}
struct Message {
  long type;
  char text[1];
};
bool ReceiveFromQueue() {
  queue = msgget(IPC_PRIVATE, 0600);
  Message message;
  return msgrcv(queue, &message, 1, 0, 0) == 1;
}
void SendToQueue() {
  Message message = {1, {'x'}};
  Count(msgsnd(queue, &message, 1, 0) == 0, errno);
}

bool ReadInotify() {
  int fd = inotify_init();
  inotify_add_watch(fd, folder, IN_CREATE);
  char bytes[512];
  return read(fd, bytes, sizeof(bytes)) > 0;
}
void CreateFile() { close(open(InFolder("new").c_str(), O_CREAT | O_RDWR, 0600)); }
bool ReadEvent() {
  ends[1] = eventfd(0, 0);
  uint64_t count = 0;
  return read(ends[1], &count, 8) == 8 && count == 1;
}
void RaiseEvent() {
  uint64_t one = 1;
  Count(write(ends[1], &one, 8) == 8, errno);
}

// Asynchronous input: its wait is none of those that a thread is chosen in.
bool AioEvents() {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 1, &context) != 0) return Poll();  // not in this kernel
  iocb wanted = {};
  wanted.aio_lio_opcode = IOCB_CMD_POLL;
  wanted.aio_fildes = ends[0];
  wanted.aio_buf = POLLIN;
  iocb* list[] = {&wanted};
  if (syscall(SYS_io_submit, context, 1, list) != 1) return Poll();
  io_event event;
  timespec hour = kHour;
  return syscall(SYS_io_getevents, context, 1, 1, &event, &hour) == 1;
}

constexpr Wait kWaits[] = {
    {"read", Read, WritePipe},
    {"read_socket", ReadSocket, WriteSocket},
    {"read_inotify", ReadInotify, CreateFile},
    {"read_eventfd", ReadEvent, RaiseEvent},
    {"readv", ReadV, WritePipe},
    {"readv_socket", ReadVSocket, WriteSocket},
    {"recv", Receive, WriteSocket},
    {"recvmsg", ReceiveMessage, WriteSocket},
    {"recvmmsg", ReceiveMessages, WriteSocket},
    {"send", SendOne, DrainSocket},
    {"accept", Accept, ConnectOne},
    {"connect", ConnectBehindAnother, AcceptOne},
    {"endless_poll", Poll, WritePipe},
    {"poll_an_hour", PollAnHour, WritePipe},
    {"ppoll_read_only_time", PollUntilReadOnlyTime, WritePipe},
    {"select_an_hour", Select, WritePipe},
    {"pselect", PSelect, WritePipe},
    {"endless_epoll", Epoll, WritePipe},
    {"epoll_pwait", EpollPWait, WritePipe},
    {"epoll_pwait2", EpollPWait2, WritePipe},
    {"futex_wait", FutexWait, FutexWake},
    {"futex_wait_an_hour", FutexWaitAnHour, FutexWake},
    {"futex_wait_bits", FutexWaitBits, FutexWake},
    {"nanosleep_an_hour", Sleep, Signal},
    {"sleep_until", SleepUntil, Signal},
    {"pause", Pause, Signal},
    {"sigsuspend", SigSuspend, Signal},
    {"sigwait", SigWait, Signal},
    {"sigwaitinfo", SigWaitInfo, Signal},
    {"sigtimedwait_an_hour", SigTimedWait, Signal},
    {"wait4", Wait4, ClosePipe},
    {"waitid", WaitId, ClosePipe},
    {"flock", FLock, FUnlock},
    {"record_lock", RecordLock, [] { close(ends[1]); }},
    {"open_fifo", OpenFifo, OpenOtherEnd},
    {"semop", Semaphore, SemaphoreUp},
    {"semtimedop", SemaphoreAnHour, SemaphoreUp},
    {"msgrcv", ReceiveFromQueue, SendToQueue},
    {"io_getevents", AioEvents, WritePipe},
};

void RemoveFolder() {
  for (const char* name : {"lock", "fifo", "new"}) unlink(InFolder(name).c_str());
  rmdir(folder);
  semctl(semaphore, 0, IPC_RMID);
  msgctl(queue, IPC_RMID, nullptr);
}

}  // namespace

const Wait* FindWait(const char* name) {
  for (const Wait& wait : kWaits) {
    if (strcmp(wait.name, name) == 0) return &wait;
  }
  return nullptr;
}

void BlockIn(const Wait& wait) {
  if (!Prepare()) return Count(false, errno);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  waiter = pthread_self();
  std::thread waker([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    // Spins, so that the thread in question is the one that waits.
    while (!Stopped()) {
    }
    wait.wake();
  });
  page->ready = 1;
  errno = 0;
  bool good = wait.wait();
  Count(good && Stopped(), errno);
  waker.join();
  RemoveFolder();
}
