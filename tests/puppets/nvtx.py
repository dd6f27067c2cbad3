"""NVTX ranges without NVTX: what its header does in each program that uses it.

At its first call NVTX loads the library that NVTX_INJECTION64_PATH names and lets it
put functions into a table (nvtxDetail/nvtxInit.h); without the variable ranges do
nothing.
"""

import ctypes
import os

CALLBACKS, CORE = 1, 1
START_A, END, PUSH_A, POP, SIZE = 5, 7, 9, 11, 16


class Ranges(object):
    def __init__(self):
        self.functions = (ctypes.c_void_p * SIZE)()
        path = os.environ.get("NVTX_INJECTION64_PATH")
        if not path:
            return
        self.table = (ctypes.c_void_p * SIZE)()
        for i in range(SIZE):
            self.table[i] = ctypes.addressof(self.functions) + 8 * i
        get_module = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32,
                                      ctypes.POINTER(ctypes.c_void_p),
                                      ctypes.POINTER(ctypes.c_uint))
        get_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("get_module", get_module)]

        def module(number, table, size):
            if number == CORE:
                table[0] = ctypes.addressof(self.table)
                size[0] = SIZE
            return 1 if number == CORE else 0

        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), get_module(module))
        self.get_table = get_table(
            lambda number: ctypes.addressof(self.callbacks) if number == CALLBACKS else None)
        ctypes.CDLL(path).InitializeInjectionNvtx2(self.get_table)

    def push(self, name):
        if self.functions[PUSH_A]:
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(self.functions[PUSH_A])(name)

    def start(self, name):
        if not self.functions[START_A]:
            return 0
        return ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p)(self.functions[START_A])(name)

    def end(self, number):
        if self.functions[END]:
            ctypes.CFUNCTYPE(None, ctypes.c_uint64)(self.functions[END])(number)

    def pop(self):
        if self.functions[POP]:
            ctypes.CFUNCTYPE(ctypes.c_int)(self.functions[POP])()
