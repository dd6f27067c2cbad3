// What stands under each heading. All figures are the report's own.

function named(text, count, about, ...body) { return { text, count, about, body }; }
function sentenceOf(text) { return text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : ''; }
function none(text) { return el('p', 'none', text); }
function orNone(rows, text, make) { return rows.length ? make() : none(text); }

// What samples say the launching thread did in a row's gaps.
function doingList(row) {
  if (!row.doing || !row.doing.length) return null;
  const list = el('ul', 'stack');
  for (const line of row.doing) {
    const half = line.high_percent === null || line.low_percent === null ? null : (line.high_percent - line.low_percent) / 2;
    const share = line.share_percent === null ? `${formatCount(line.samples)} samples` : `${formatPercent(line.share_percent)}${half === null ? '' : ` \u00b1 ${half.toFixed(1)}`}`;
    list.append(el('li', '', share, ' in ', siteNode(line), line.callee ? [' \u2192 ', siteNode(line.callee)] : null));
  }
  return el('div', '', el('h3', '', 'What the thread did meanwhile, by samples'), list);
}

function regionList(row) {
  if (!row.regions || !row.regions.length) return null;
  return el('div', '', el('h3', '', 'In regions of the program'), el('ul', 'stack', row.regions.map((region) =>
    el('li', '', `${formatPercent(region.share_percent)} in ${[...region.path, region.name].join(' > ')}`))));
}

function gapsSection() {
  const { gaps } = DATA.report;
  const rows = (row) => el('div', '', el('dl', 'pair',
    el('dt', '', 'before'), el('dd', '', siteNode(row.before)), el('dt', '', 'after'), el('dd', '', siteNode(row.after)),
    el('dt', '', 'due to'), el('dd', '', row.api ? `${row.api} at ` : '', siteNode(row.culprit))),
  doingList(row), regionList(row), stacksOf(row));
  return named('Idle by line', gaps.length, 'Each row is idle time of one cause between two lines of the program: the one that launched what ran before, and the one that launched what ended it. Unfold a row for stacks and what the thread did meanwhile.',
    orNone(gaps, DATA.lines.busy, () => makeTable([
      column.cause(),
      column.ms('idle', 'total_ms', TIPS.idle),
      column.share('share', 'share_percent', 'Of all idle time.', (r) => causeColour(r.cause)),
      column.count('parts', 'count', TIPS.parts),
      column.ms('longest', 'max_ms'),
      { label: 'due to', wide: true, value: (r) => siteText(r.culprit), text: (r) => `${r.api || ''} ${siteText(r.culprit)} ${siteText(r.before)} ${siteText(r.after)}`,
        cell: (r) => el('div', '', siteNode(r.culprit), el('div', 'sub', r.api ? `${r.api}; ` : '', `${siteText(r.before)} \u2192 ${siteText(r.after)}`)) },
    ], gaps, { sort: 1, inner: rows, cause: (r) => r.cause, label: 'idle time by line' })));
}

function syncsSection() {
  const rows = DATA.report.sync_points;
  return named('Waits for the GPU', rows.length, 'Calls in which the host was blocked until the GPU was done. Wasted is what a fix wins back; needed time had to be waited for anyway.',
    orNone(rows, 'The host was never blocked on the GPU.', () => makeTable([
      column.site('where', (r) => r.site),
      column.text('call', 'api'),
      column.ms('blocked', 'blocked_ms', TIPS.blocked),
      column.count('calls', 'calls'),
      column.ms('judged', 'judged_blocked_ms', TIPS.judged),
      column.ms('needed', 'needed_ms', TIPS.needed),
      column.ms('wasted', 'wasted_ms', TIPS.wasted),
      column.ms('longest', 'max_ms'),
    ], rows, { sort: 2, inner: stacksOf, hasInner: hasStacks, label: 'waits for the GPU' })));
}
function hasStacks(row) { return Boolean((row.stack && row.stack.length) || (row.native_stack && row.native_stack.length) || excerptsOf(row).length); }

function hotSection() {
  const { roles, lines, samples } = DATA.hot;
  const graph = flameGraph();
  // An imported trace tells where threads were, and not whether they had a processor.
  const states = roles.some((r) => r.running_percent > 0 || r.ready_percent > 0 || r.blocked_percent > 0);
  return named('Host time', lines.length, 'Where threads of the host were, by looks at them from outside, also while the GPU was busy.',
    orNone(lines, sentenceOf(DATA.no_samples) || 'No samples of host threads were taken.', () => el('div', '',
      graph,
      el('h3', '', 'Kinds of threads'),
      makeTable([
        { label: 'threads', value: (r) => ROLES[r.role] || r.role, cell: (r) => ROLES[r.role] || r.role },
        column.count('samples', 'samples'), column.ms('time', 'time_ms', 'Of all its threads, added up.'),
        ...(states ? [column.percent('running', 'running_percent', TIPS.running), column.percent('ready', 'ready_percent', TIPS.ready), column.percent('waiting', 'blocked_percent', TIPS.waiting)] : []),
        column.percent('no line', 'no_python_percent', 'The thread ran no Python.'),
      ], roles, { sort: 2, label: 'kinds of threads' }),
      el('h3', '', 'By line'),
      makeTable([
        { label: 'self', tip: TIPS.self, num: true, value: (r) => r.self_percent, cell: (r) => (r.self_percent === null ? '\u2013'
          : `${formatPercent(r.self_percent)} \u00b1 ${((r.self_high_percent - r.self_low_percent) / 2).toFixed(1)}`) },
        column.percent('total', 'total_percent', TIPS.total),
        column.ms('self time', 'self_ms'), column.count('samples', 'samples', TIPS.samples),
        ...(states ? [column.percent('running', 'running_percent', TIPS.running), column.percent('waiting', 'blocked_percent', TIPS.waiting)] : []),
        { label: 'threads', value: (r) => r.role, cell: (r) => r.role },
        column.site('where', (r) => r),
      ], lines, { sort: 2, inner: stacksOf, hasInner: hasStacks, label: 'host time by line' }),
      samples.taken === 0 ? null : el('p', 'note', `${formatCount(samples.taken)} samples in all; ${formatCount(samples.late)} late, ${formatCount(samples.cut)} cut, ${formatCount(samples.failed)} failed, ${formatCount(samples.skipped)} never taken. Below 30 samples there are no shares.`))));
}

function kernelsSection() {
  const { kernels, copies } = DATA.report;
  return named('Kernels and copies', kernels.length, 'What ran on the GPU in traced time. Kernels that overlap count twice, so that their sum may exceed busy time.',
    orNone(kernels, 'No kernel was seen.', () => makeTable([
      { label: 'kernel', wide: true, value: (r) => r.name, cell: (r) => { const node = el('span', 'where', withoutPyTorch(shortFunction(r.name))); node.title = turnless(r.name.slice(0, 600)); return el('div', '', node, r.operator ? el('div', 'sub', r.operator) : null); } },
      column.ms('time', 'total_ms'), column.share('share', 'share_percent', 'Of the sum of all kernels\u2019 times.', () => BUSY.kernel[1]),
      column.count('calls', 'calls'), column.ms('mean', 'avg_ms'), column.ms('longest', 'max_ms'),
      column.percent('occupancy', 'occupancy_percent', TIPS.occupancy),
      { label: 'TC', tip: TIPS.tensor, value: (r) => (r.tensor_core ? 1 : 0), text: () => '', cell: (r) => (r.tensor_core ? '\u2713' : '') },
      column.site('launched at', (r) => r.site),
    ], kernels, { sort: 1, label: 'kernels', hasInner: (r) => hasStacks(r) || r.name.length > 90,
      inner: (r) => el('div', '', el('p', 'where', r.name), stacksOf(r)) })),
    el('h3', '', 'Copies'),
    orNone(copies, 'No copy was seen.', () => makeTable([
      { label: 'direction', value: (r) => r.direction, cell: (r) => withTip({ HtoD: 'From the host to the device.', DtoH: 'From the device to the host.', DtoD: 'Within devices.', PtoP: 'From one device to another.', memset: 'Fills memory.' }[r.direction], r.direction) },
      { label: 'host memory', value: (r) => r.memory || '', cell: (r) => (r.memory === 'pageable' ? withTip(TIPS.pageable, r.memory) : r.memory || '\u2013') },
      column.count('count', 'count'), column.bytes('bytes', 'bytes'), column.ms('time', 'total_ms'),
      { label: 'GB/s', num: true, value: (r) => r.gb_per_s, cell: (r) => formatNumber(r.gb_per_s, 2) },
    ], copies, { sort: 4, label: 'copies' })));
}

function operatorsSection() {
  const { ops, total_ops: total } = DATA.operators;
  return named('Operators', total, 'Operators of PyTorch by GPU time and memory; forward, backward and optimizer apart.',
    orNone(ops, 'No operator of PyTorch is known.', () => el('div', '', makeTable([
      { label: 'operator', wide: true, value: (r) => r.name, cell: (r) => el('span', 'where', r.name) },
      column.text('pass', 'pass'), column.ms('own time', 'own_gpu_ms', TIPS.own), column.share('share', 'own_gpu_percent', 'Own, of all GPU work in traced time.', () => BUSY.kernel[1]),
      column.ms('total', 'gpu_ms'), column.count('launches', 'launches', TIPS.launches), column.bytes('allocated', 'allocated_bytes'),
      column.site('where', (r) => r.site),
    ], ops, { sort: 2, total, inner: stacksOf, hasInner: hasStacks, label: 'operators' }), markNote(ops))));
}

const STEP_PARTS = { kernel: 'kernels', memcpy: 'copies', memset: 'memsets', communication: 'communication', runtime: 'CUDA calls', data: 'data', host: 'host waits, collections, allocations', other: 'the rest' };

// A step's number, which leads to it on the timeline where there is one.
function stepLink(row) {
  if (!DATA.timeline.bands.length) return String(row.number);
  return button('link', `Show step ${row.number}`, () => goToStep(row.number, row.pid), String(row.number));
}

function stepsChart() {
  const { steps, tick_ns: tick } = DATA.timeline;
  if (!steps.length) return null;
  const median = DATA.steps.median;
  return makeChart(steps.map((row, i) => ({
    name: row.rank === null ? `process ${row.pid}` : `rank ${row.rank}`, colour: seriesColour(i), pid: row.pid,
    x: row.number, y: row.duration.map((ticks) => ticks * tick / 1e6),
  })), {
    label: 'Duration of each step', yLabel: formatMs, xLabel: (x) => `step ${grouped(x)}`,
    yStep: (most) => roundStep(most, 4),
    marks: median && median.duration_ms ? [{ y: median.duration_ms, text: `median ${formatMs(median.duration_ms)}` }] : [],
    tell: (hit) => [`${hit.series.name}, step ${hit.series.x[hit.index]}: ${formatMs(hit.series.y[hit.index])}`, DATA.timeline.bands.length ? 'Click: the timeline of this step' : null],
    onClick: (hit) => goToStep(hit.series.x[hit.index], hit.series.pid),
  });
}

function medianList(median) {
  if (!median) return null;
  return el('dl', 'pair', Object.entries(STEP_PARTS).map(([key, word]) => (median[`${key}_ms`] === null || !(median[`${key}_ms`] > 0) ? null
    : [el('dt', '', word), el('dd', '', formatMs(median[`${key}_ms`]))])));
}

function stepsSection() {
  const { steps, count, median, source, phases } = DATA.steps;
  const { outliers, outliers_in_all: all, steps: bands } = DATA.timeline;
  const thinned = bands.some((band) => band.count > band.number.length);
  return named('Steps', count, 'Training steps over time. Those that took much longer than their process\u2019s median are named, with what made them long.',
    orNone(steps, 'No training steps are known: the program calls no optimizer of PyTorch, and none were named.', () => el('div', '',
      stepsChart(),
      thinned ? el('p', 'note', 'Of each stretch of steps the shortest and the longest are drawn.') : null,
      el('p', 'note', `${formatCount(count)} steps, told by ${{ optimizer: 'the optimizer\u2019s step', nvtx: 'NVTX ranges', period: 'the period of the work', profiler: 'the profiler\u2019s marks' }[source] || source || 'nothing'}.`),
      outliers.length ? [el('h3', '', `Steps that stand out: ${formatCount(all)}`), makeTable([
        { label: 'step', num: true, value: (r) => r.number, cell: stepLink },
        column.rank(), column.ms('began at', 'start_ms', 'After the start of the job.'), column.ms('took', 'duration_ms'),
        { label: 'times the median', num: true, value: (r) => r.times_median, cell: (r) => formatNumber(r.times_median, 1) },
        { label: 'what made it long', value: (r) => (r.part ? STEP_PARTS[r.part] || r.part : ''), cell: (r) => (r.part ? `${STEP_PARTS[r.part] || r.part}: ${formatMs(r.excess_ms)} above its median` : '\u2013') },
      ], outliers, { sort: 3, label: 'steps that stand out', total: all })] : el('p', 'note', 'No step stands out.'),
      el('h3', '', 'The median step'), medianList(median),
      el('h3', '', 'The newest steps'),
      makeTable([
        { label: 'step', num: true, value: (r) => r.number, cell: stepLink },
        column.rank(), column.ms('took', 'duration_ms'),
        ...Object.entries({ kernel: 'kernels', memcpy: 'copies', communication: 'communication', runtime: 'CUDA calls', data: 'data', host: 'host', other: 'other' }).map(([key, word]) => column.ms(word, `${key}_ms`)),
      ], steps, { sort: 0, label: 'steps', total: count }),
      phases.length ? [el('h3', '', 'What was no step'), makeTable([
        column.text('phase', 'phase'), { label: 'part', value: (r) => r.part, cell: (r) => r.part.replace(/_/g, ' ') },
        column.ms('time', 'time_ms', 'Of a process, on average.'), column.percent('share', 'share_percent'),
      ], phases, { label: 'what was no step' })] : null)));
}

function memoryChart(row) {
  const points = row.points || {};
  if (!points.time_ms || points.time_ms.length < 2) return null;
  const bySteps = points.step && points.step[0] !== null;
  const x = bySteps ? points.step : points.time_ms;
  const series = [{ name: 'live', colour: seriesColour(0), x, y: points.live_bytes, line: true }];
  if (points.reserved_bytes && points.reserved_bytes[0] !== null) series.unshift({ name: 'reserved', colour: seriesColour(6), x, y: points.reserved_bytes, line: true });
  return makeChart(series, {
    label: 'Memory over time', height: 170, yLabel: formatBytes, xLabel: (at, step) => (bySteps ? `step ${grouped(at)}` : axisLabel(at, step)),
    yStep: bytesStep, marks: [{ y: row.peak_bytes, text: `peak ${formatBytes(row.peak_bytes)}` }],
    tell: (hit) => [`${hit.series.name}: ${formatBytes(hit.series.y[hit.index])}`, bySteps ? `after step ${hit.series.x[hit.index]}` : `${formatMs(hit.series.x[hit.index])} after the start`],
  });
}

function memoryName(row) {
  const device = row.device === null ? 'host' : `GPU ${row.device}`;
  return `${row.rank === null ? `process ${row.pid}` : `rank ${row.rank}`} \u00b7 ${row.allocator} \u00b7 ${device}`;
}

function memorySection() {
  const { memory, malloc_retries: retries } = DATA.memory;
  const shown = memory.slice(0, 4);
  return named('Memory', memory.length, 'What was live over time, and the lines that made up the peak.',
    orNone(memory, 'No allocations were recorded.', () => el('div', '',
      shown.map((row) => el('div', '', el('h3', '', memoryName(row)), memoryChart(row),
        row.growth ? el('p', 'note', `Grows by ${formatBytes(row.growth.bytes_per_step)} a step, from step ${formatCount(row.growth.first_step)} to ${formatCount(row.growth.last_step)}${row.growth.sites.map((site, i) => `${i ? ', ' : ': '}${siteText(site.site)}`).join('')}.`) : null,
        row.peak_sites && row.peak_sites.length ? [makeTable([
          column.bytes('at the peak', 'bytes'), column.blocks('blocks', 'blocks'), column.site('allocated at', (r) => r.site),
        ], row.peak_sites, { sort: 0, inner: stacksOf, hasInner: hasStacks, label: `lines that made the peak of ${memoryName(row)}` }), markNote(row.peak_sites)] : null)),
      el('h3', '', 'All allocators'),
      makeTable([
        column.rank(), column.text('allocator', 'allocator'), { label: 'device', value: (r) => r.device, cell: (r) => (r.device === null ? 'host' : String(r.device)) },
        column.bytes('live', 'live_bytes', TIPS.live), column.bytes('peak', 'peak_bytes', TIPS.peak),
        column.bytes('reserved', 'reserved_bytes', TIPS.reserved), column.bytes('reserved, peak', 'reserved_peak_bytes'),
      ], memory, { sort: 4, label: 'allocators' }),
      retries.length ? [el('h3', '', 'Calls that asked for device memory and got none'), makeTable([
        column.site('where', (r) => r.site), column.count('failed', 'failed_calls'), column.count('retries', 'retries'), column.ms('time', 'total_ms'),
      ], retries, { sort: 3, inner: stacksOf, hasInner: hasStacks, label: 'failed allocations' })] : null)));
}

function dataSection() {
  const { loaders, lines, parts, enough, batches } = DATA.data;
  return named('Loading data', loaders.length, 'What batches cost the training, and what loading them costs.',
    orNone(loaders.length ? loaders : lines, 'No DataLoader was seen.', () => el('div', '',
      makeTable([column.text('loader', 'loader'), column.ms('waited for', 'total_ms', 'All of __next__, whether it waits for a worker or does the work itself.'), column.count('calls', 'calls'), column.ms('longest', 'max_ms'), column.site('where', (r) => r.site)], loaders, { sort: 1, inner: stacksOf, hasInner: hasStacks, label: 'loaders' }),
      batches ? el('p', 'note', `${formatCount(batches)} batches.`) : null,
      enough && enough.workers !== null ? el('p', 'note', `${formatNumber(enough.workers, 1)} workers for each training process would keep up with it (95 % interval ${formatNumber(enough.low, 1)} to ${formatNumber(enough.high, 1)}).`) : null,
      parts.length ? [el('h3', '', 'What a batch costs'), makeTable([column.text('threads', 'role'), column.text('part', 'part'), column.ms('time', 'total_ms'), column.ms('a batch', 'per_batch_ms'), column.percent('share', 'share_percent')], parts, { sort: 2, label: 'parts of loading' })] : null,
      lines.length ? [el('h3', '', 'By line'), makeTable([column.ms('time', 'total_ms'), column.ms('a batch', 'per_batch_ms'), column.percent('share', 'share_percent'), column.percent('own', 'own_percent'), column.site('where', (r) => r)], lines, { sort: 0, inner: stacksOf, hasInner: hasStacks, label: 'loading by line' })] : null)));
}

function regionsSection() {
  const { regions } = DATA.regions;
  return named('Regions', regions.length, 'What the program named with record_function or NVTX, and what the GPU did meanwhile.',
    orNone(regions, 'The program named no regions.', () => makeTable([
      { label: 'region', wide: true, value: (r) => [...r.path, r.name].join(' > '), cell: (r) => el('span', 'where', r.path.length ? el('span', 'fn', `${r.path.join(' > ')} > `) : null, r.name) },
      column.count('count', 'count'), column.ms('time', 'total_ms', 'Of all threads, added up.'), column.ms('longest', 'max_ms'),
      column.ms('traced', 'traced_ms', TIPS.traced), column.ms('GPU busy', 'gpu_busy_ms', TIPS.busy),
      { label: 'GPU idle, mostly', value: (r) => (r.causes && r.causes.length ? causeWord(r.causes[0].cause) : ''), cell: (r) => (r.causes && r.causes.length ? [causeLabel(r.causes[0].cause), ` ${formatMs(r.causes[0].total_ms)}`] : '\u2013') },
      column.site('where', (r) => r.site),
    ], regions, { sort: 2, inner: stacksOf, hasInner: hasStacks, label: 'regions' })));
}

function waitsSection() {
  const rows = DATA.report.host_waits;
  return named('Waits on the host', rows.length, 'Where threads of the host waited for something other than the GPU.',
    orNone(rows, 'Nothing was waited for beyond the threshold.', () => makeTable([
      { label: 'for', value: (r) => r.kind, cell: (r) => withTip({ data: 'The next batch of a DataLoader.', gil: 'Python\u2019s global lock.', lock: 'A lock.', io: 'A file or a socket.', sleep: 'A clock.', process: 'Another process.' }[r.kind], r.kind) },
      column.ms('waited', 'total_ms'), column.count('waits', 'count'), column.ms('longest', 'max_ms'), column.text('call', 'api'), column.site('where', (r) => r.site),
    ], rows, { sort: 1, inner: stacksOf, hasInner: hasStacks, label: 'waits on the host' })));
}

function gcSection() {
  const rows = DATA.report.gc_pauses;
  return named('Garbage collection', rows.length, 'Pauses of Python\u2019s collector, and the lines that set them off.',
    orNone(rows, 'Python\u2019s collector did not run.', () => makeTable([
      { label: 'generation', tip: TIPS.generation, num: true, value: (r) => r.generation, cell: (r) => String(r.generation) },
      column.ms('paused', 'total_ms'), column.count('pauses', 'count'), column.ms('longest', 'max_ms'), column.count('collected', 'collected', 'Objects.'), column.site('set off at', (r) => r.site),
    ], rows, { sort: 1, inner: stacksOf, hasInner: hasStacks, label: 'garbage collection' })));
}

function allocationsSection() {
  const rows = DATA.report.allocation_sites;
  return named('Allocations', rows.length, 'Memory that was allocated, by line: freed again or not.',
    orNone(rows, 'No allocations were recorded.', () => el('div', '', makeTable([
      column.site('where', (r) => r.site), column.text('allocator', 'allocator'), column.bytes('allocated', 'bytes'), column.blocks('calls', 'calls'), column.blocks('frees', 'frees'),
      column.bytes('live', 'live_bytes', TIPS.live), column.bytes('peak', 'peak_bytes', TIPS.peak), column.ms('blocked', 'blocked_ms', 'Time inside cudaMalloc, cudaFree and the like.'),
    ], rows, { sort: 2, inner: stacksOf, hasInner: hasStacks, label: 'allocations' }), markNote(rows))));
}

function processesSection() {
  const { processes, devices } = DATA.report;
  return named('Processes and devices', processes.length, 'Who did the work.',
    makeTable([
      column.rank(), { label: 'pid', num: true, value: (r) => r.pid, cell: (r) => String(r.pid) }, column.ms('lived', 'duration_ms'), column.count('launches', 'launches', TIPS.launches),
      column.ms('traced', 'traced_ms', TIPS.traced), column.ms('busy', 'busy_ms', TIPS.busy), column.ms('blocked', 'blocked_ms', 'In calls that wait for the GPU.'), column.ms('data', 'data_wait_ms'), column.ms('GC', 'gc_ms'),
      column.ms('no processor', 'run_delay_ms', TIPS.run_delay), { label: 'command', wide: true, value: (r) => r.command, cell: (r) => el('span', 'where', r.command) },
    ], processes, { sort: 0, ascending: true, label: 'processes' }),
    devices.length ? [el('h3', '', 'Devices'), makeTable([
      { label: 'device', value: (r) => r.name || '', cell: (r) => `${r.device}: ${r.name || 'unknown'}` }, { label: 'pid', num: true, value: (r) => r.pid, cell: (r) => String(r.pid) },
      column.bytes('memory', 'total_bytes'), column.ms('traced', 'traced_ms', TIPS.traced), column.ms('busy', 'busy_ms', TIPS.busy), column.ms('idle', 'idle_ms', TIPS.idle),
    ], devices, { label: 'devices' })] : null);
}

function measuringSection() {
  const { losses, overhead, gpu, job } = DATA.report;
  const numbers = (object) => el('dl', 'pair', Object.entries(object).filter(([, value]) => typeof value === 'number').map(([key, value]) =>
    [el('dt', '', key.replace(/_ms$/, '').replace(/_/g, ' ')), el('dd', '', key.endsWith('_ms') ? formatMs(value) : key.endsWith('percent') ? formatPercent(value) : formatCount(value))]));
  return named('What was measured', null, 'How much of the job this page is about, what is missing of it, and what measuring cost.',
    [DATA.lines.coverage, DATA.lines.losses, DATA.lines.step_cost, DATA.lines.overhead, ...DATA.lines.remarks, ...DATA.lines.imported].filter(Boolean).map((line) => el('p', 'note', line)),
    el('details', '', el('summary', '', 'Every counter'), el('h3', '', 'Losses'), numbers(losses), el('h3', '', 'Cost'), numbers(overhead)),
    gpu.spans.length ? el('details', '', el('summary', '', `When the GPU was traced: ${formatCount(gpu.spans.length)} spans`), makeTable([
      { label: 'pid', num: true, value: (r) => r.pid, cell: (r) => String(r.pid) }, column.ms('from', 'start_ms', 'After the start of the job.'), column.ms('for', 'duration_ms'), column.text('state', 'state'), column.text('because of', 'reason'),
    ], gpu.spans, { label: 'tracing' })) : null,
    el('dl', 'pair', el('dt', '', 'command'), el('dd', '', job.command), el('dt', '', 'host'), el('dd', '', job.host || '\u2013'),
      el('dt', '', 'job'), el('dd', 'mono', job.id), el('dt', '', 'page made'), el('dd', '', DATA.made_at || 'served by lull web')),
    DATA.cut_names ? el('p', 'note', `${formatCount(DATA.cut_names)} names were too long for a page and are cut; the length of each stands at its end.`) : null);
}

function wordsSection() {
  const list = el('dl', 'words');
  for (const cause of CAUSE_ORDER) list.append(el('dt', '', causeLabel(cause)), el('dd', '', CAUSES[cause][4]));
  for (const key of ['traced', 'busy', 'idle', 'blocked', 'needed', 'wasted', 'self', 'total', 'peak', 'reserved']) list.append(el('dt', '', key), el('dd', '', TIPS[key]));
  return named('Words', null, 'What the words on this page mean.', list);
}
