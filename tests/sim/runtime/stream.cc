// Streams, events, host functions, capture and graphs.
#include "tests/sim/runtime/api.h"

using namespace lull::sim;

SIM_EXPORT int cudaStreamCreate(void** stream) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuStreamCreateWithPriority(stream, 0, 0));
}
SIM_EXPORT int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuStreamCreateWithPriority(stream, flags, 0));
}
SIM_EXPORT int cudaStreamCreateWithPriority(void** stream, unsigned flags,
                                            int priority) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuStreamCreateWithPriority(stream, flags, priority));
}
SIM_EXPORT int cudaStreamDestroy(void* stream) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuStreamDestroy_v2(stream));
}
SIM_STREAM_API(cudaStreamSynchronize, _ptsz, (void* stream),
               return call.done(driver.cuStreamSynchronize[kPerThread](stream));)
SIM_STREAM_API(cudaStreamQuery, _ptsz, (void* stream),
               return call.done(driver.cuStreamQuery[kPerThread](stream));)
SIM_STREAM_API(cudaStreamWaitEvent, _ptsz, (void* stream, void* event, unsigned flags),
               return call.done(driver.cuStreamWaitEvent[kPerThread](stream, event,
                                                                     flags));)
SIM_STREAM_API(cudaStreamGetFlags, _ptsz, (void* stream, unsigned* flags),
               return call.done(driver.cuStreamGetFlags[kPerThread](stream, flags));)
SIM_STREAM_API(cudaStreamGetPriority, _ptsz, (void* stream, int* priority),
               return call.done(driver.cuStreamGetPriority[kPerThread](stream,
                                                                       priority));)
SIM_STREAM_API(cudaStreamGetId, _ptsz, (void* stream, unsigned long long* id),
               return call.done(driver.cuStreamGetId[kPerThread](stream, id));)
SIM_STREAM_API(cudaStreamGetDevice, _ptsz, (void* stream, int* device),
               return call.done(driver.cuStreamGetDevice[kPerThread](stream, device));)
SIM_STREAM_API(cudaLaunchHostFunc, _ptsz,
               (void* stream, void (*function)(void*), void* data),
               return call.done(driver.cuLaunchHostFunc[kPerThread](stream, function,
                                                                    data));)
SIM_STREAM_API(cudaStreamAddCallback, _ptsz,
               (void* stream, void (*function)(void*, int, void*), void* data,
                unsigned flags),
               return call.done(driver.cuStreamAddCallback[kPerThread](stream, function,
                                                                       data, flags));)

SIM_EXPORT int cudaEventCreate(void** event) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventCreate(event, 0));
}
SIM_EXPORT int cudaEventCreateWithFlags(void** event, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventCreate(event, flags));
}
SIM_EXPORT int cudaEventDestroy(void* event) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventDestroy_v2(event));
}
SIM_STREAM_API(cudaEventRecord, _ptsz, (void* event, void* stream),
               return call.done(driver.cuEventRecordWithFlags[kPerThread](event, stream,
                                                                          0));)
SIM_STREAM_API(cudaEventRecordWithFlags, _ptsz,
               (void* event, void* stream, unsigned flags),
               return call.done(driver.cuEventRecordWithFlags[kPerThread](event, stream,
                                                                          flags));)
SIM_EXPORT int cudaEventQuery(void* event) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventQuery(event));
}
SIM_EXPORT int cudaEventSynchronize(void* event) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventSynchronize(event));
}
SIM_EXPORT int cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventElapsedTime_v2(milliseconds, start, end));
}
#if LULL_SIM_CUDART < 13
SIM_EXPORT int cudaEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuEventElapsedTime_v2(milliseconds, start, end));
}
#endif

SIM_STREAM_API(cudaStreamBeginCapture, _ptsz, (void* stream, int mode),
               return call.done(driver.cuStreamBeginCapture_v2[kPerThread](stream,
                                                                           mode));)
SIM_STREAM_API(cudaStreamEndCapture, _ptsz, (void* stream, void** graph),
               return call.done(driver.cuStreamEndCapture[kPerThread](stream, graph));)
SIM_STREAM_API(cudaStreamIsCapturing, _ptsz, (void* stream, int* status),
               return call.done(driver.cuStreamIsCapturing[kPerThread](stream,
                                                                       status));)
SIM_EXPORT int cudaThreadExchangeStreamCaptureMode(int* mode) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuThreadExchangeStreamCaptureMode(mode));
}

// Version 13 gave the shortest name to the newest signature, the one with edges.
#if LULL_SIM_CUDART >= 13
SIM_STREAM_API(cudaStreamGetCaptureInfo, _ptsz,
               (void* stream, int* status, unsigned long long* id, void** graph,
                void*** nodes, void** edges, size_t* count),
               return call.done(driver.cuStreamGetCaptureInfo_v3[kPerThread](
                   stream, status, id, graph, nodes, edges, count));)
SIM_STREAM_API(cudaStreamUpdateCaptureDependencies, _ptsz,
               (void* stream, void** nodes, const void* edges, size_t count,
                unsigned flags),
               return call.done(driver.cuStreamUpdateCaptureDependencies_v2[kPerThread](
                   stream, nodes, edges, count, flags));)
#else
SIM_STREAM_API(cudaStreamGetCaptureInfo, _ptsz,
               (void* stream, int* status, unsigned long long* id),
               return call.done(driver.cuStreamGetCaptureInfo_v3[kPerThread](
                   stream, status, id, nullptr, nullptr, nullptr, nullptr));)
SIM_STREAM_API(cudaStreamGetCaptureInfo_v2, _ptsz,
               (void* stream, int* status, unsigned long long* id, void** graph,
                void*** nodes, size_t* count),
               return call.done(driver.cuStreamGetCaptureInfo_v3[kPerThread](
                   stream, status, id, graph, nodes, nullptr, count));)
SIM_STREAM_API(cudaStreamGetCaptureInfo_v3, _ptsz,
               (void* stream, int* status, unsigned long long* id, void** graph,
                void*** nodes, void** edges, size_t* count),
               return call.done(driver.cuStreamGetCaptureInfo_v3[kPerThread](
                   stream, status, id, graph, nodes, edges, count));)
SIM_STREAM_API(cudaStreamUpdateCaptureDependencies, _ptsz,
               (void* stream, void** nodes, size_t count, unsigned flags),
               return call.done(driver.cuStreamUpdateCaptureDependencies_v2[kPerThread](
                   stream, nodes, nullptr, count, flags));)
SIM_STREAM_API(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
               (void* stream, void** nodes, const void* edges, size_t count,
                unsigned flags),
               return call.done(driver.cuStreamUpdateCaptureDependencies_v2[kPerThread](
                   stream, nodes, edges, count, flags));)
#endif

SIM_EXPORT int cudaGraphCreate(void** graph, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphCreate(graph, flags));
}
SIM_EXPORT int cudaGraphDestroy(void* graph) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphDestroy(graph));
}
SIM_EXPORT int cudaGraphGetNodes(void* graph, void** nodes, size_t* count) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphGetNodes(graph, nodes, count));
}
SIM_EXPORT int cudaGraphNodeGetType(void* node, int* type) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphNodeGetType(node, type));
}
SIM_EXPORT int cudaGraphInstantiate(void** exec, void* graph,
                                    unsigned long long flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}
SIM_EXPORT int cudaGraphInstantiateWithFlags(void** exec, void* graph,
                                             unsigned long long flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}
SIM_EXPORT int cudaGraphExecDestroy(void* exec) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphExecDestroy(exec));
}
SIM_EXPORT int cudaGraphExecUpdate(void* exec, void* graph, void* result) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuGraphExecUpdate_v2(exec, graph, result));
}
SIM_STREAM_API(cudaGraphLaunch, _ptsz, (void* exec, void* stream),
               return call.done(driver.cuGraphLaunch[kPerThread](exec, stream));)
SIM_STREAM_API(cudaGraphUpload, _ptsz, (void* exec, void* stream),
               return call.done(driver.cuGraphUpload[kPerThread](exec, stream));)
