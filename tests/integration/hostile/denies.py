"""Runs a command under a seccomp filter that answers one system call with EPERM:
denies.py CALL COMMAND..."""

import ctypes
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"memfd_create": 319, "openat2": 437, "close_range": 436},
    "aarch64": {"memfd_create": 279, "openat2": 437, "close_range": 436},
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def main():
    number = NUMBERS[platform.machine()][sys.argv[1]]
    code = b"".join(struct.pack("<HBBI", *line) for line in (
        (LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | 1),
        (RETURN, 0, 0, ALLOW)))
    buffer = ctypes.create_string_buffer(code)
    program = Program(4, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0):
        sys.exit(f"denies.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
