#include "tests/fuzz/import_inputs.h"

#include <zlib.h>

#include <cstdlib>

#include "daemon/import/chrome_reader.h"
#include "daemon/import/translate.h"
#include "tests/fuzz/checked_sink.h"

namespace lull::imports {
namespace {

constexpr char kTrace[] =
    R"TRACE({"schemaVersion":1,"baseTimeNanoseconds":1751410836000000000,
"deviceProperties":[{"id":0,"name":"GPU","numSms":8,"totalGlobalMem":80}],
"distributedInfo":{"rank":1},"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"python"}},
{"ph":"X","cat":"python_function","name":"train.py(3): step","pid":9,"tid":9,"ts":0.5,"dur":90.25},
{"ph":"X","cat":"python_function","name":"<built-in method acquire of _thread.lock object at 0x7f>","pid":9,"tid":9,"ts":1,"dur":60},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":9,"tid":9,"ts":2,"dur":80},
{"ph":"X","cat":"user_annotation","name":"enumerate(DataLoader)#It.__next__","pid":9,"tid":9,"ts":2,"dur":5},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":9,"tid":10,"ts":8,"dur":9,"args":{"Call stack":"a.py(1): f;b.py(2): g"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":10,"ts":9,"dur":2,"args":{"correlation":5}},
{"ph":"s","id":5,"pid":9,"tid":10,"ts":9,"cat":"ac2g","name":"ac2g"},
{"ph":"X","cat":"kernel","name":"void k<int>(float*)","pid":0,"tid":"stream 7","ts":12,"dur":3,"args":{"device":0,"stream":7,"correlation":5,"grid":[1,2,3],"block":[32,1,1],"registers per thread":32,"shared memory":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":9,"tid":10,"ts":20,"dur":9,"args":{"correlation":6}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,"ts":22,"dur":4,"args":{"device":0,"stream":7,"correlation":6,"bytes":4096}},
{"ph":"X","cat":"gpu_memset","name":"Memset (Device)","pid":0,"tid":7,"ts":32,"dur":4,"args":{"device":0,"stream":7,"bytes":16}},
{"ph":"X","cat":"cuda_runtime","name":"cudaFree","pid":9,"tid":10,"ts":40,"dur":9},
{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":9,"tid":10,"ts":41,"s":"t","args":{"Bytes":-512,"Addr":139,"Total Allocated":1,"Total Reserved":2,"Device Type":1,"Device Id":0}}
]})TRACE";

std::string Gzipped(const std::string& text) {
  z_stream stream = {};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    abort();
  }
  std::string packed(text.size() + 1024, '\0');
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

void FuzzImport(std::string_view input) {
  ReadLimits limits;
  limits.records = 10'000;
  limits.value_bytes = 64 << 10;
  auto trace = ReadChromeTrace(*Input::OfBytes(std::string(input)), limits);
  if (!trace.ok()) return;
  ApiTable apis;
  ImportCounts counts;
  auto sink = CheckedSink();
  if (!Translate(*trace, 1, apis, sink, &counts).ok()) abort();
}

std::vector<std::string> ImportSeeds() {
  const std::string trace = kTrace;
  const size_t open = trace.find("[\n{\"ph\":\"M\"");
  const size_t close = trace.rfind(']');
  return {trace, trace.substr(open, close + 1 - open), Gzipped(trace)};
}

}  // namespace lull::imports
