// THE list of every function that lull intercepts: the one place where a hook is
// added. From it come HookId and the names below, the exported wrappers, their
// originals, the look-up tables of dlsym.cc, the checks of the CUDA signatures
// and of what liblull.so exports.
//
// A row:  X(id, family, need, result, name, (parameters), (arguments), event)
//   id      part of the ABI (Event::api): never reuse or renumber; append
//   family  launch, sync, copy, memory, wait, torch or life
//   need    required: every version of its library has it; optional: some have
//   event   what the event of a call carries, an expression over the parameters,
//           evaluated after the original returned (hooks/cuda_call.h); `other`
//           where the wrapper is written by hand
// A row of a LULL_TWIN has a second function, id + 1, with the suffix _ptsz or
// _ptds: the same for programs compiled for per-thread default streams.
//
// The namespaces are four lists: runtime (libcudart, one wrapper for each of its
// version nodes), driver (libcuda.so.1), libc and torch (mangled).
//
// This header needs nothing. Only who expands the parameters of the CUDA lists
// needs preload/hooks/cuda_types.h, or of the libc list the headers of libc.
#pragma once

#include <cstdint>

// clang-format off
#define LULL_TWIN(X, id, family, need, suffix, name, parameters, arguments, event) \
  X(id, family, need, int, name, parameters, arguments, event)                     \
  X(id + 1, family, optional, int, name##suffix, parameters, arguments, event)

#define LULL_RUNTIME_HOOKS(X) \
  LULL_TWIN(X, 1, launch, required, _ptsz, cudaLaunchKernel, (const void* function, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream), (function, grid, block, args, shared, stream), launched(stream, function)) \
  LULL_TWIN(X, 3, launch, optional, _ptsz, cudaLaunchKernelExC, (const LaunchConfig* config, const void* function, void** args), (config, function, args), launched(stream_of(config), function)) \
  LULL_TWIN(X, 5, launch, optional, _ptsz, __cudaLaunchKernel, (void* function, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream), (function, grid, block, args, shared, stream), launched(stream, function)) \
  LULL_TWIN(X, 7, launch, required, _ptsz, cudaLaunchCooperativeKernel, (const void* function, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream), (function, grid, block, args, shared, stream), launched(stream, function)) \
  LULL_TWIN(X, 9, launch, required, _ptsz, cudaGraphLaunch, (void* graph, void* stream), (graph, stream), launched(stream, graph)) \
  X(20, sync, required, int, cudaDeviceSynchronize, (), (), synchronized(nullptr)) \
  X(21, sync, optional, int, cudaThreadSynchronize, (), (), synchronized(nullptr)) \
  LULL_TWIN(X, 22, sync, required, _ptsz, cudaStreamSynchronize, (void* stream), (stream), synchronized(stream)) \
  X(24, sync, required, int, cudaEventSynchronize, (void* event), (event), synchronized(event)) \
  LULL_TWIN(X, 30, copy, required, _ptds, cudaMemcpy, (void* dst, const void* src, size_t count, int kind), (dst, src, count, kind), copied(dst, src, count, kind)) \
  LULL_TWIN(X, 32, copy, required, _ptsz, cudaMemcpyAsync, (void* dst, const void* src, size_t count, int kind, void* stream), (dst, src, count, kind, stream), copied_async(stream, dst, src, count, kind)) \
  LULL_TWIN(X, 34, copy, required, _ptds, cudaMemcpy2D, (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, int kind), (dst, dpitch, src, spitch, width, height, kind), copied(dst, src, width * height, kind)) \
  LULL_TWIN(X, 36, copy, required, _ptsz, cudaMemcpy2DAsync, (void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, int kind, void* stream), (dst, dpitch, src, spitch, width, height, kind, stream), copied_async(stream, dst, src, width * height, kind)) \
  LULL_TWIN(X, 38, copy, required, _ptds, cudaMemcpy3D, (const Memcpy3DParms* p), (p), copied_3d(p)) \
  LULL_TWIN(X, 40, copy, required, _ptsz, cudaMemcpy3DAsync, (const Memcpy3DParms* p, void* stream), (p, stream), copied_3d_async(stream, p)) \
  LULL_TWIN(X, 42, copy, required, _ptds, cudaMemcpyToSymbol, (const void* symbol, const void* src, size_t count, size_t offset, int kind), (symbol, src, count, offset, kind), copied_to_device(src, count, kind)) \
  LULL_TWIN(X, 44, copy, required, _ptsz, cudaMemcpyToSymbolAsync, (const void* symbol, const void* src, size_t count, size_t offset, int kind, void* stream), (symbol, src, count, offset, kind, stream), copied_to_device_async(stream, src, count, kind)) \
  LULL_TWIN(X, 46, copy, required, _ptds, cudaMemcpyFromSymbol, (void* dst, const void* symbol, size_t count, size_t offset, int kind), (dst, symbol, count, offset, kind), copied_from_device(dst, count, kind)) \
  LULL_TWIN(X, 48, copy, required, _ptsz, cudaMemcpyFromSymbolAsync, (void* dst, const void* symbol, size_t count, size_t offset, int kind, void* stream), (dst, symbol, count, offset, kind, stream), copied_from_device_async(stream, dst, count, kind)) \
  X(50, copy, required, int, cudaMemcpyPeer, (void* dst, int dst_device, const void* src, int src_device, size_t count), (dst, dst_device, src, src_device, count), on_device(nullptr, count)) \
  X(51, copy, required, int, cudaMemcpyPeerAsync, (void* dst, int dst_device, const void* src, int src_device, size_t count, void* stream), (dst, dst_device, src, src_device, count, stream), on_device(stream, count)) \
  LULL_TWIN(X, 60, copy, required, _ptds, cudaMemset, (void* dst, int value, size_t count), (dst, value, count), on_device(nullptr, count)) \
  LULL_TWIN(X, 62, copy, required, _ptsz, cudaMemsetAsync, (void* dst, int value, size_t count, void* stream), (dst, value, count, stream), on_device(stream, count)) \
  LULL_TWIN(X, 64, copy, required, _ptds, cudaMemset2D, (void* dst, size_t pitch, int value, size_t width, size_t height), (dst, pitch, value, width, height), on_device(nullptr, width * height)) \
  LULL_TWIN(X, 66, copy, required, _ptsz, cudaMemset2DAsync, (void* dst, size_t pitch, int value, size_t width, size_t height, void* stream), (dst, pitch, value, width, height, stream), on_device(stream, width * height)) \
  X(80, memory, required, int, cudaMalloc, (void** out, size_t size), (out, size), allocated(out, size)) \
  X(81, memory, required, int, cudaMallocPitch, (void** out, size_t* pitch, size_t width, size_t height), (out, pitch, width, height), allocated_pitched(out, pitch, height)) \
  X(82, memory, required, int, cudaMallocManaged, (void** out, size_t size, unsigned flags), (out, size, flags), allocated(out, size)) \
  X(83, memory, required, int, cudaMallocArray, (void** out, const ChannelFormat* format, size_t width, size_t height, unsigned flags), (out, format, width, height, flags), allocated_array(out, format, width, height)) \
  X(84, memory, required, int, cudaMallocHost, (void** out, size_t size), (out, size), pinned(out, size)) \
  X(85, memory, required, int, cudaHostAlloc, (void** out, size_t size, unsigned flags), (out, size, flags), pinned(out, size)) \
  X(86, memory, required, int, cudaHostRegister, (void* pointer, size_t size, unsigned flags), (pointer, size, flags), pinned_at(pointer, size)) \
  X(87, memory, required, int, cudaHostUnregister, (void* pointer), (pointer), unpinned(pointer)) \
  X(88, memory, required, int, cudaFree, (void* pointer), (pointer), freed(pointer)) \
  X(89, memory, required, int, cudaFreeArray, (void* array), (array), freed(array)) \
  X(90, memory, required, int, cudaFreeHost, (void* pointer), (pointer), unpinned(pointer)) \
  LULL_TWIN(X, 91, memory, optional, _ptsz, cudaMallocAsync, (void** out, size_t size, void* stream), (out, size, stream), allocated(out, size)) \
  LULL_TWIN(X, 93, memory, optional, _ptsz, cudaMallocFromPoolAsync, (void** out, size_t size, void* pool, void* stream), (out, size, pool, stream), allocated(out, size)) \
  LULL_TWIN(X, 95, memory, optional, _ptsz, cudaFreeAsync, (void* pointer, void* stream), (pointer, stream), freed(pointer)) \
  LULL_TWIN(X, 110, life, optional, _ptsz, cudaGetDriverEntryPoint, (const char* symbol, void** out, unsigned long long flags, int* status), (symbol, out, flags, status), other) \
  LULL_TWIN(X, 112, life, optional, _ptsz, cudaGetDriverEntryPointByVersion, (const char* symbol, void** out, unsigned version, unsigned long long flags, int* status), (symbol, out, version, flags, status), other)

// cuMemMap is no allocation (cuMemCreate was): its event has 0 bytes.
#define LULL_DRIVER_HOOKS(X) \
  LULL_TWIN(X, 200, launch, required, _ptsz, cuLaunchKernel, (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** args, void** extra), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, args, extra), launched(stream, function)) \
  LULL_TWIN(X, 202, launch, optional, _ptsz, cuLaunchKernelEx, (const DriverLaunchConfig* config, void* function, void** args, void** extra), (config, function, args, extra), launched(stream_of(config), function)) \
  LULL_TWIN(X, 204, launch, required, _ptsz, cuLaunchCooperativeKernel, (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** args), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, args), launched(stream, function)) \
  LULL_TWIN(X, 206, launch, required, _ptsz, cuGraphLaunch, (void* graph, void* stream), (graph, stream), launched(stream, graph)) \
  X(220, sync, required, int, cuCtxSynchronize, (), (), synchronized(nullptr)) \
  X(221, sync, optional, int, cuCtxSynchronize_v2, (void* context), (context), synchronized(nullptr)) \
  LULL_TWIN(X, 222, sync, required, _ptsz, cuStreamSynchronize, (void* stream), (stream), synchronized(stream)) \
  X(224, sync, required, int, cuEventSynchronize, (void* event), (event), synchronized(event)) \
  LULL_TWIN(X, 230, copy, required, _ptds, cuMemcpy, (DevicePointer dst, DevicePointer src, size_t count), (dst, src, count), copied(as_pointer(dst), as_pointer(src), count, kCopyDefault)) \
  LULL_TWIN(X, 232, copy, required, _ptsz, cuMemcpyAsync, (DevicePointer dst, DevicePointer src, size_t count, void* stream), (dst, src, count, stream), copied_async(stream, as_pointer(dst), as_pointer(src), count, kCopyDefault)) \
  LULL_TWIN(X, 234, copy, required, _ptds, cuMemcpyHtoD_v2, (DevicePointer dst, const void* src, size_t count), (dst, src, count), copied_to_device(src, count, kCopyHostToDevice)) \
  LULL_TWIN(X, 236, copy, required, _ptsz, cuMemcpyHtoDAsync_v2, (DevicePointer dst, const void* src, size_t count, void* stream), (dst, src, count, stream), copied_to_device_async(stream, src, count, kCopyHostToDevice)) \
  LULL_TWIN(X, 238, copy, required, _ptds, cuMemcpyDtoH_v2, (void* dst, DevicePointer src, size_t count), (dst, src, count), copied_from_device(dst, count, kCopyDeviceToHost)) \
  LULL_TWIN(X, 240, copy, required, _ptsz, cuMemcpyDtoHAsync_v2, (void* dst, DevicePointer src, size_t count, void* stream), (dst, src, count, stream), copied_from_device_async(stream, dst, count, kCopyDeviceToHost)) \
  LULL_TWIN(X, 242, copy, required, _ptds, cuMemcpyDtoD_v2, (DevicePointer dst, DevicePointer src, size_t count), (dst, src, count), on_device(nullptr, count)) \
  LULL_TWIN(X, 244, copy, required, _ptsz, cuMemcpyDtoDAsync_v2, (DevicePointer dst, DevicePointer src, size_t count, void* stream), (dst, src, count, stream), on_device(stream, count)) \
  LULL_TWIN(X, 246, copy, required, _ptds, cuMemcpy2D_v2, (const DriverMemcpy2D* p), (p), copied_2d(p)) \
  LULL_TWIN(X, 248, copy, required, _ptsz, cuMemcpy2DAsync_v2, (const DriverMemcpy2D* p, void* stream), (p, stream), copied_2d_async(stream, p)) \
  LULL_TWIN(X, 250, copy, required, _ptds, cuMemcpy3D_v2, (const DriverMemcpy3D* p), (p), copied_3d(p)) \
  LULL_TWIN(X, 252, copy, required, _ptsz, cuMemcpy3DAsync_v2, (const DriverMemcpy3D* p, void* stream), (p, stream), copied_3d_async(stream, p)) \
  LULL_TWIN(X, 254, copy, required, _ptds, cuMemcpyPeer, (DevicePointer dst, void* dst_context, DevicePointer src, void* src_context, size_t count), (dst, dst_context, src, src_context, count), on_device(nullptr, count)) \
  LULL_TWIN(X, 256, copy, required, _ptsz, cuMemcpyPeerAsync, (DevicePointer dst, void* dst_context, DevicePointer src, void* src_context, size_t count, void* stream), (dst, dst_context, src, src_context, count, stream), on_device(stream, count)) \
  LULL_TWIN(X, 270, copy, required, _ptds, cuMemsetD8_v2, (DevicePointer dst, unsigned char value, size_t count), (dst, value, count), on_device(nullptr, count)) \
  LULL_TWIN(X, 272, copy, required, _ptds, cuMemsetD16_v2, (DevicePointer dst, unsigned short value, size_t count), (dst, value, count), on_device(nullptr, 2 * count)) \
  LULL_TWIN(X, 274, copy, required, _ptds, cuMemsetD32_v2, (DevicePointer dst, unsigned value, size_t count), (dst, value, count), on_device(nullptr, 4 * count)) \
  LULL_TWIN(X, 276, copy, required, _ptsz, cuMemsetD8Async, (DevicePointer dst, unsigned char value, size_t count, void* stream), (dst, value, count, stream), on_device(stream, count)) \
  LULL_TWIN(X, 278, copy, required, _ptsz, cuMemsetD16Async, (DevicePointer dst, unsigned short value, size_t count, void* stream), (dst, value, count, stream), on_device(stream, 2 * count)) \
  LULL_TWIN(X, 280, copy, required, _ptsz, cuMemsetD32Async, (DevicePointer dst, unsigned value, size_t count, void* stream), (dst, value, count, stream), on_device(stream, 4 * count)) \
  X(290, memory, required, int, cuMemAlloc_v2, (DevicePointer* out, size_t size), (out, size), allocated(out, size)) \
  X(291, memory, required, int, cuMemAllocPitch_v2, (DevicePointer* out, size_t* pitch, size_t width, size_t height, unsigned element), (out, pitch, width, height, element), allocated_pitched(out, pitch, height)) \
  X(292, memory, required, int, cuMemAllocManaged, (DevicePointer* out, size_t size, unsigned flags), (out, size, flags), allocated(out, size)) \
  X(293, memory, required, int, cuMemHostAlloc, (void** out, size_t size, unsigned flags), (out, size, flags), pinned(out, size)) \
  X(294, memory, required, int, cuMemAllocHost_v2, (void** out, size_t size), (out, size), pinned(out, size)) \
  X(295, memory, required, int, cuMemHostRegister_v2, (void* pointer, size_t size, unsigned flags), (pointer, size, flags), pinned_at(pointer, size)) \
  X(296, memory, required, int, cuMemHostUnregister, (void* pointer), (pointer), unpinned(pointer)) \
  X(297, memory, required, int, cuMemFree_v2, (DevicePointer pointer), (pointer), freed(as_pointer(pointer))) \
  X(298, memory, required, int, cuMemFreeHost, (void* pointer), (pointer), unpinned(pointer)) \
  LULL_TWIN(X, 299, memory, optional, _ptsz, cuMemAllocAsync, (DevicePointer* out, size_t size, void* stream), (out, size, stream), allocated(out, size)) \
  LULL_TWIN(X, 301, memory, optional, _ptsz, cuMemAllocFromPoolAsync, (DevicePointer* out, size_t size, void* pool, void* stream), (out, size, pool, stream), allocated(out, size)) \
  LULL_TWIN(X, 303, memory, optional, _ptsz, cuMemFreeAsync, (DevicePointer pointer, void* stream), (pointer, stream), freed(as_pointer(pointer))) \
  X(305, memory, required, int, cuMemCreate, (unsigned long long* out, size_t size, const void* properties, unsigned long long flags), (out, size, properties, flags), allocated(out, size)) \
  X(306, memory, required, int, cuMemRelease, (unsigned long long handle), (handle), freed(as_pointer(handle))) \
  X(307, memory, required, int, cuMemMap, (DevicePointer pointer, size_t size, size_t offset, unsigned long long handle, unsigned long long flags), (pointer, size, offset, handle, flags), mapped_at(pointer)) \
  X(308, memory, required, int, cuMemUnmap, (DevicePointer pointer, size_t size), (pointer, size), freed(as_pointer(pointer))) \
  X(320, life, optional, int, cuGetProcAddress, (const char* symbol, void** out, int version, unsigned long flags), (symbol, out, version, flags), other) \
  X(321, life, optional, int, cuGetProcAddress_v2, (const char* symbol, void** out, int version, unsigned long flags, int* status), (symbol, out, version, flags, status), other)

#define LULL_LIBC_HOOKS(X) \
  X(400, wait, required, int, sem_wait, (sem_t* sem), (sem), other) \
  X(401, wait, required, int, sem_timedwait, (sem_t* sem, const timespec* deadline), (sem, deadline), other) \
  X(402, wait, optional, int, sem_clockwait, (sem_t* sem, clockid_t clock, const timespec* deadline), (sem, clock, deadline), other) \
  X(403, wait, required, int, pthread_cond_wait, (pthread_cond_t* cond, pthread_mutex_t* mutex), (cond, mutex), other) \
  X(404, wait, required, int, pthread_cond_timedwait, (pthread_cond_t* cond, pthread_mutex_t* mutex, const timespec* deadline), (cond, mutex, deadline), other) \
  X(405, wait, optional, int, pthread_cond_clockwait, (pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline), (cond, mutex, clock, deadline), other) \
  X(406, wait, required, int, poll, (pollfd* fds, nfds_t count, int timeout), (fds, count, timeout), other) \
  X(407, wait, required, int, ppoll, (pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask), (fds, count, timeout, mask), other) \
  X(408, wait, required, int, __poll_chk, (pollfd* fds, nfds_t count, int timeout, size_t room), (fds, count, timeout, room), other) \
  X(409, wait, required, int, __ppoll_chk, (pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t room), (fds, count, timeout, mask, room), other) \
  X(410, wait, required, int, select, (int count, fd_set* reads, fd_set* writes, fd_set* excepts, timeval* timeout), (count, reads, writes, excepts, timeout), other) \
  X(411, wait, required, int, pselect, (int count, fd_set* reads, fd_set* writes, fd_set* excepts, const timespec* timeout, const sigset_t* mask), (count, reads, writes, excepts, timeout, mask), other) \
  X(412, wait, required, int, epoll_wait, (int epoll, epoll_event* events, int room, int timeout), (epoll, events, room, timeout), other) \
  X(413, wait, required, int, epoll_pwait, (int epoll, epoll_event* events, int room, int timeout, const sigset_t* mask), (epoll, events, room, timeout, mask), other) \
  X(414, wait, required, ssize_t, read, (int fd, void* buffer, size_t size), (fd, buffer, size), other) \
  X(415, wait, required, ssize_t, __read_chk, (int fd, void* buffer, size_t size, size_t room), (fd, buffer, size, room), other) \
  X(416, wait, required, ssize_t, recv, (int fd, void* buffer, size_t size, int flags), (fd, buffer, size, flags), other) \
  X(417, wait, required, ssize_t, __recv_chk, (int fd, void* buffer, size_t size, size_t room, int flags), (fd, buffer, size, room, flags), other) \
  X(418, wait, required, ssize_t, recvfrom, (int fd, void* buffer, size_t size, int flags, sockaddr* from, socklen_t* from_size), (fd, buffer, size, flags, from, from_size), other) \
  X(419, wait, required, ssize_t, __recvfrom_chk, (int fd, void* buffer, size_t size, size_t room, int flags, sockaddr* from, socklen_t* from_size), (fd, buffer, size, room, flags, from, from_size), other) \
  X(420, wait, required, ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags), other) \
  X(421, wait, required, int, nanosleep, (const timespec* duration, timespec* left), (duration, left), other) \
  X(422, wait, required, int, clock_nanosleep, (clockid_t clock, int flags, const timespec* when, timespec* left), (clock, flags, when, left), other) \
  X(423, wait, required, pid_t, waitpid, (pid_t pid, int* status, int options), (pid, status, options), other) \
  X(424, wait, required, pid_t, wait4, (pid_t pid, int* status, int options, rusage* usage), (pid, status, options, usage), other) \
  X(425, wait, required, pid_t, wait, (int* status), (status), other) \
  X(440, life, required, void*, dlsym, (void* handle, const char* name), (handle, name), other) \
  X(441, life, required, int, dlclose, (void* handle), (handle), other) \
  X(442, life, required, int, prctl, (int option, long a, long b, long c, long d), (option, a, b, c, d), other) \
  X(443, life, required, long, syscall, (long number, long a, long b, long c, long d, long e, long f), (number, a, b, c, d, e, f), other)

// Three manglings of one function: int64 sizes (up to 1.9), with int64 totals
// (from 1.10), with size_t totals (about from 2.3).
#define LULL_TORCH_HOOKS(X) \
  X(460, torch, optional, void, _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, (void* pointer, int64_t bytes, Device device), (pointer, bytes, device), other) \
  X(461, torch, optional, void, _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, (void* pointer, int64_t bytes, int64_t allocated, int64_t reserved, Device device), (pointer, bytes, allocated, reserved, device), other) \
  X(462, torch, optional, void, _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, (void* pointer, int64_t bytes, size_t allocated, size_t reserved, Device device), (pointer, bytes, allocated, reserved, device), other) \
  X(464, torch, optional, void, _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm, (void* reporter, void* block, size_t bytes), (reporter, block, bytes), other) \
  X(465, torch, optional, void, _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv, (void* reporter, void* block), (reporter, block), other) \
  X(466, torch, optional, void*, _ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE, (void* scalar, const void* tensor), (scalar, tensor), other) \
  X(467, torch, optional, void, _ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_, (void* engine, const void* roots, const void* inputs, bool keep, bool create, bool accumulate, const void* outputs), (engine, roots, inputs, keep, create, accumulate, outputs), other) \
  X(468, torch, optional, void, _ZN5torch8autograd6Engine11thread_initEiRKSt10shared_ptrINS0_10ReadyQueueEEb, (void* engine, int device, const void* queue, bool increment), (engine, device, queue, increment), other) \
  X(469, torch, optional, void, _ZN2at16getStepCallbacksENS_11RecordScopeE, (uint8_t scope), (scope), other)
// clang-format on

#define LULL_ALL_HOOKS(X) \
  LULL_RUNTIME_HOOKS(X) LULL_DRIVER_HOOKS(X) LULL_LIBC_HOOKS(X) LULL_TORCH_HOOKS(X)

namespace lull::abi {

enum class HookFamily : uint8_t {
  k_none = 0,  // an id that this build does not know
  k_launch,
  k_sync,
  k_copy,
  k_memory,
  k_wait,
  k_torch,
  k_life,
};

// HookId::k_cudaLaunchKernel and so on.
enum class HookId : uint16_t {
  k_none = 0,
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  k_##name = id,
  LULL_ALL_HOOKS(LULL_ROW)
#undef LULL_ROW
};

// The name of the intercepted function as people know it; "" for an id that this
// build does not know (the other end may be newer). Valid for ever.
constexpr const char* hook_name(uint16_t hook) {
  switch (hook) {
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  case id:                                                                     \
    return #name;
    LULL_RUNTIME_HOOKS(LULL_ROW)
    LULL_DRIVER_HOOKS(LULL_ROW)
    LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
    case 460:
    case 461:
    case 462:
      return "c10::reportMemoryUsageToProfiler";
    case 464:
      return "c10::ProfiledCPUMemoryReporter::New";
    case 465:
      return "c10::ProfiledCPUMemoryReporter::Delete";
    case 466:
      return "at::_local_scalar_dense";
    case 467:
      return "torch::autograd::Engine::execute";
    case 468:
      return "torch::autograd::Engine::thread_init";
    case 469:
      return "at::getStepCallbacks";
    default:
      return "";
  }
}

constexpr HookFamily hook_family(uint16_t hook) {
  switch (hook) {
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  case id:                                                                     \
    return HookFamily::k_##family;
    LULL_ALL_HOOKS(LULL_ROW)
#undef LULL_ROW
    default:
      return HookFamily::k_none;
  }
}

}  // namespace lull::abi
