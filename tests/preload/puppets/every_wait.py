"""Calls every function of libc that lull watches for waiting, through ctypes, so
that each waits for about 60 ms, and prints what it returned and its errno."""

import ctypes
import os
import select
import socket
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
DELAY = 0.06
CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


class PollFd(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint), ("iov", ctypes.c_void_p),
                ("iov_count", ctypes.c_size_t), ("control", ctypes.c_void_p),
                ("control_size", ctypes.c_size_t), ("flags", ctypes.c_int)]


def in_delay():
    return ctypes.byref(Timespec(0, int(DELAY * 1e9)))


def deadline(clock):
    at = time.clock_gettime(clock) + DELAY
    return ctypes.byref(Timespec(int(at), int(at % 1 * 1e9)))


def call(name, *arguments):
    ctypes.set_errno(0)
    function = getattr(libc, name)
    function.restype = ctypes.c_long if "re" in name[:6] else ctypes.c_int
    result = function(*arguments)
    print(name, result, ctypes.get_errno() if result == -1 else 0)


def later(function, *arguments):
    threading.Timer(DELAY, function, arguments).start()


def size(value):
    return ctypes.c_size_t(value)


# Semaphores and conditions.
sem = ctypes.create_string_buffer(64)
libc.sem_init(sem, 0, 0)
later(libc.sem_post, sem)
call("sem_wait", sem)
call("sem_timedwait", sem, deadline(CLOCK_REALTIME))
if hasattr(libc, "sem_clockwait"):
    call("sem_clockwait", sem, CLOCK_MONOTONIC, deadline(CLOCK_MONOTONIC))

cond, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
libc.pthread_cond_init(cond, None)
libc.pthread_mutex_init(mutex, None)
libc.pthread_mutex_lock(mutex)
later(libc.pthread_cond_signal, cond)
call("pthread_cond_wait", cond, mutex)
call("pthread_cond_timedwait", cond, mutex, deadline(CLOCK_REALTIME))
if hasattr(libc, "pthread_cond_clockwait"):
    call("pthread_cond_clockwait", cond, mutex, CLOCK_MONOTONIC, deadline(CLOCK_MONOTONIC))

# Descriptors.
reader, writer = os.pipe()
near, far = socket.socketpair()
poll_fd = PollFd(reader, 1, 0)
buffer = ctypes.create_string_buffer(16)
milliseconds = int(DELAY * 1000)
call("poll", ctypes.byref(poll_fd), size(1), milliseconds)
call("ppoll", ctypes.byref(poll_fd), size(1), in_delay(), None)
call("__poll_chk", ctypes.byref(poll_fd), size(1), milliseconds, size(8))
call("__ppoll_chk", ctypes.byref(poll_fd), size(1), in_delay(), None, size(8))
call("select", 0, None, None, None, ctypes.byref(Timespec(0, milliseconds * 1000)))
call("pselect", 0, None, None, None, in_delay(), None)
epoll = select.epoll()
events = ctypes.create_string_buffer(64)
call("epoll_wait", epoll.fileno(), events, 4, milliseconds)
call("epoll_pwait", epoll.fileno(), events, 4, milliseconds, None)
later(os.write, writer, b"abc")
call("read", reader, buffer, size(16))
later(os.write, writer, b"abcd")
call("__read_chk", reader, buffer, size(16), size(16))
later(far.send, b"a")
call("recv", near.fileno(), buffer, size(16), 0)
later(far.send, b"ab")
call("__recv_chk", near.fileno(), buffer, size(16), size(16), 0)
later(far.send, b"abc")
call("recvfrom", near.fileno(), buffer, size(16), 0, None, None)
later(far.send, b"abcd")
call("__recvfrom_chk", near.fileno(), buffer, size(16), size(16), 0, None, None)
vector = Iovec(ctypes.cast(buffer, ctypes.c_void_p), 16)
message = Message(iov=ctypes.cast(ctypes.pointer(vector), ctypes.c_void_p), iov_count=1)
later(far.send, b"abcde")
call("recvmsg", near.fileno(), ctypes.byref(message), 0)
near.settimeout(0)
call("recv", near.fileno(), buffer, size(16), 0)  # EAGAIN

# Clocks and children.
call("nanosleep", in_delay(), None)
call("clock_nanosleep", CLOCK_MONOTONIC, 0, in_delay(), None)
call("nanosleep", ctypes.byref(Timespec(0, -1)), None)  # EINVAL


def child():
    pid = os.fork()
    if pid == 0:
        time.sleep(DELAY)
        os._exit(3)
    return pid


status = ctypes.c_int()
for name, arguments in (("waitpid", (ctypes.byref(status), 0)),
                        ("wait4", (ctypes.byref(status), 0, None)),
                        ("wait", (ctypes.byref(status),))):
    pid = child()
    function = getattr(libc, name)
    result = function(*arguments) if name == "wait" else function(pid, *arguments)
    print(name, result == pid, status.value)
call("waitpid", -1, None, 0)  # ECHILD
