// Two sides of jobs against each other: what `lull diff --json` says.

const DIFF_KINDS = [['gone', 'gone'], ['new', 'new'], ['changed', 'changed'], ['moved', 'moved'], ['rare', 'rare'], ['same', 'the same']];

// Where it was, and where it is, if that differs.
function syncPlace(row) {
  const moved = row.a_site && row.b_site && siteText(row.a_site) !== siteText(row.b_site);
  return moved ? el('span', '', siteNode(row.a_site), ' \u2192 ', siteNode(row.b_site)) : siteNode(row.site);
}

function syncWord(row, key, word) { return key === 'same' && row.edited ? 'edited' : word; }

function sideList(runs) {
  return el('ul', 'stack', runs.map((run) => el('li', '', `${run.name || run.id.slice(0, 8)} (${run.id.slice(0, 8)}): ${formatCount(run.steps)} steps`,
    run.step_ms === null ? null : `, median ${formatMs(run.step_ms)}`)));
}

function differenceColumns(unit, format) {
  const a = `a_${unit}`;
  const b = `b_${unit}`;
  const half = (r) => (r[`high_${unit}`] === null ? null : (r[`high_${unit}`] - r[`low_${unit}`]) / 2);
  return [
    { label: 'A', num: true, value: (r) => r[a], cell: (r) => format(r[a]) },
    { label: 'B', num: true, value: (r) => r[b], cell: (r) => format(r[b]) },
    { label: 'difference', num: true, value: (r) => r[b] - r[a],
      cell: (r) => `${r[b] < r[a] ? '\u2212' : '+'}${format(Math.abs(r[b] - r[a]))}${half(r) === null ? '' : ` \u00b1 ${format(half(r))}`}` },
  ];
}

// So many digits, and no whole one less: as the text says them.
function toDigits(value, digits) {
  return value >= 10 ** digits - 0.5 ? formatCount(Math.round(value)) : String(Number(value.toPrecision(digits)));
}

function signed(percent) { return `${percent < 0 ? '' : '+'}${percent.toFixed(2)}`; }

// What these runs could show, and how many would show what was asked for.
function spreadSentence(step) {
  if (typeof step.spread_percent !== 'number' || typeof step.detectable_percent !== 'number') return '';
  const needed = step.runs_needed ? `; one of ${toDigits(step.asked_percent, 3)} % takes about ${formatCount(step.runs_needed)} a side` : '';
  return ` Runs of one program differ by ${toDigits(step.spread_percent, 2)} %. So many runs show a change of ${toDigits(step.detectable_percent, 2)} %${needed}.`;
}

function stepSentence(step) {
  if (!step) return null;
  const { diff } = DATA;
  const single = Math.min(diff.a.length, diff.b.length) < 2;
  const text = `Median step: A ${formatMs(step.a)}, B ${formatMs(step.b)}; ${signed(step.change_percent)} % (${signed(step.low_percent)} to ${signed(step.high_percent)} %, ${step.known ? '95 % interval' : 'of these very runs'})`;
  return el('p', '', step.known ? `${text}.${spreadSentence(step)}` : `${text}. ${single ? 'One run a side: of' : 'Of'} times this proves nothing.`);
}

function buildDiff() {
  const { diff } = DATA;
  const syncs = DIFF_KINDS.flatMap(([key, word]) => diff.sync_points[key].map((row) => ({ ...row, word: syncWord(row, key, word) })));
  const perStep = 'Of one process, in a step.';
  const times = (id, text, rows, name, total) => [id, named(text, total === undefined ? rows.length : total, perStep, orNone(rows, 'Nothing is known of both sides.', () =>
    makeTable([name, ...differenceColumns('ms_per_step', formatMs)], rows, { label: text, total })))];
  showSections('Comparison', el('header', 'job', el('h1', '', 'Comparison'), el('p', 'verdict', sentenceOf(diff.headline)),
    DATA.made_at ? el('p', '', `Page made ${DATA.made_at}.`) : null,
    [...diff.reasons, ...diff.warnings].map((line) => el('p', 'note', sentenceOf(line)))), [
    ['runs', named('Runs', null, 'Steady steps alone are compared.', el('h3', '', 'A'), sideList(diff.a), el('h3', '', 'B'), sideList(diff.b), stepSentence(diff.step_ms))],
    ['syncs', named('Waits for the GPU', syncs.length, perStep, orNone(syncs, 'Neither side waits for the GPU.', () => makeTable([
      { label: '', value: (r) => r.word, cell: (r) => r.word },
      { label: 'where', wide: true, value: (r) => siteText(r.site), text: (r) => `${siteText(r.a_site)} ${siteText(r.b_site)}`, cell: syncPlace }, column.text('call', 'api'),
      { label: 'calls A', num: true, value: (r) => r.a_calls_per_step, cell: (r) => formatNumber(r.a_calls_per_step, 2) },
      { label: 'calls B', num: true, value: (r) => r.b_calls_per_step, cell: (r) => formatNumber(r.b_calls_per_step, 2) },
      column.ms('blocked A', 'a_blocked_ms_per_step'), column.ms('blocked B', 'b_blocked_ms_per_step'),
      column.ms('wasted A', 'a_wasted_ms_per_step', TIPS.wasted), column.ms('wasted B', 'b_wasted_ms_per_step', TIPS.wasted),
    ], syncs, { label: 'waits for the GPU' })))],
    times('causes', 'Idle time by cause', diff.causes, column.cause()),
    times('waits', 'The host waited for', diff.host_waits, column.text('for', 'kind')),
    times('kernels', 'Kernels', diff.kernels, { label: 'kernel', wide: true, value: (r) => r.name,
      cell: (r) => attributes(el('span', 'where', shortKernel(r.name)), { title: r.name.slice(0, 600) }) }, DATA.kernels),
    times('functions', 'Functions of the host', diff.functions, column.site('function', (r) => r.site), DATA.functions),
    ['memory', named('Memory', diff.memory.length, 'Peaks, of the process that has most.', orNone(diff.memory, 'No memory was seen.', () =>
      makeTable([column.text('allocator', 'allocator'), ...differenceColumns('peak_bytes', formatBytes)], diff.memory, { label: 'memory' })))],
  ]);
}

KINDS.diff = buildDiff;
