// What causes and columns are called, what they mean, and which colour they have: the same
// everywhere. Colours are Okabe and Ito's and Tol's, told apart without red and green; a
// letter stands beside each.

const CAUSES = {
  sync: ['sync', 'S', '#d55e00', true, 'The host was blocked on the GPU until it ran dry, or came out of that and had to catch up.'],
  data: ['data', 'D', '#e69f00', false, 'The training waited in a DataLoader\u2019s __next__ for its next batch.'],
  host_code: ['host code', 'H', '#56b4e9', false, 'The launching thread did something else between two launches.'],
  launch_bound: ['launch-bound', 'L', '#0072b2', true, 'The launching thread came straight from its previous launch: kernels are shorter than launching them takes.'],
  gc: ['GC pause', 'G', '#cc79a7', false, 'Python\u2019s garbage collector was running.'],
  gil_wait: ['GIL wait', 'I', '#f5c710', false, 'The thread wanted Python\u2019s global lock, which another thread had.'],
  host_wait: ['host wait', 'W', '#a6761d', true, 'The thread waited for a lock, a descriptor or a clock.'],
  allocator: ['allocator', 'A', '#882255', true, 'The thread was in cudaMalloc, cudaFree or the tensor allocator.'],
  run_queue: ['run queue', 'Q', '#6a51a3', true, 'The thread was ready to run and got no processor.'],
  launch_call: ['launch call', 'C', '#44507a', true, 'The call that launched took long itself: it loaded a module, compiled, or set something up.'],
  dependency: ['dependency', 'E', '#8c8c8c', false, 'The work was submitted, and waited for an event, a copy or another stream.'],
  launch_latency: ['launch latency', 'T', '#bdbdbd', false, 'From the call to its start on the device: a few microseconds each time the device had run dry.'],
  unknown: ['unknown', '?', '#5f6368', true, 'Cannot be judged, because records or events were lost. Never shared out.'],
};
const CAUSE_ORDER = Object.keys(CAUSES);
const BUSY = { kernel: ['kernels', '#009e73'], copy: ['copies', '#7fd3b8'] };

function causeWord(key) { return CAUSES[key] ? CAUSES[key][0] : String(key).replace(/_/g, ' '); }
function causeColour(key) { return (CAUSES[key] || CAUSES.unknown)[2]; }
function causeLight(key) { return (CAUSES[key] || CAUSES.unknown)[3]; }

const TIPS = {
  traced: 'Time in which the GPU\u2019s operations were recorded. What the GPU did is known for this time alone.',
  busy: 'A kernel, copy or memset ran on the device.',
  idle: 'Traced time in which nothing ran. Causes exclude each other and sum to it exactly.',
  blocked: 'Time inside the call. It is not what a fix wins: the device may well work meanwhile.',
  judged: 'Blocked time of the calls that lie in traced time.',
  needed: 'Of judged time, the device was busy: that work had to be done anyway.',
  wasted: 'The device idled because of this sync, in the call and after it, until new work came. This is what a fix wins back.',
  self: 'The thread was in this very line, of the time of all threads of its kind. \u00b1 is the 95 % interval.',
  total: 'The line was in the thread\u2019s stack.',
  running: 'On a processor.',
  ready: 'Ready to run, without a processor.',
  waiting: 'Blocked: waiting for something.',
  samples: 'Looks at threads from outside that had the line.',
  parts: 'Idle stretches, or parts of them, of this cause.',
  estimated: 'Estimated: of blocks under 64 KiB some are drawn, and stand for the others.',
  occupancy: 'Estimated achieved occupancy: warps on a multiprocessor, of the most that fit.',
  tensor: 'Its name is one of a kernel that uses tensor cores.',
  own: 'Of the operator itself, without operators that it calls.',
  launches: 'Kernels, graphs, copies and memsets that ran.',
  live: 'Allocated and not freed, at the end of the range.',
  peak: 'The most that was live at once.',
  reserved: 'What the allocator holds of the device\u2019s memory, used or not.',
  generation: 'Of Python\u2019s collector: 0 is the youngest and quickest, 2 a full collection.',
  run_delay: 'Threads of the process were ready and had no processor.',
  pageable: 'Host memory that is not pinned: copies are slower and block the host.',
};

const ROLES = {
  main: 'main threads', feeder: 'other threads that launch GPU work',
  autograd: 'PyTorch\u2019s backward threads', loader: 'DataLoader workers', other: 'other threads',
};

const VERDICTS = {
  compute: 'it is bound by computing: the GPU is used',
  launch: 'mostly it waited for launches: kernels are shorter than launching them takes',
  sync: 'mostly it stood still because the host waited for it, and then had to catch up',
  data: 'mostly it waited for data',
  communication: 'mostly it waited for other ranks',
  host: 'mostly it waited for the host',
  copy: 'mostly it was held up by copies',
};
