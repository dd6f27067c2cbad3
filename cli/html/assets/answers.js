// The three answers on top: how busy, why idle, what to change first.

function sentence() {
  const { gpu } = DATA.report;
  if (gpu.busy_ms !== null) {
    const share = `The GPU was busy ${formatPercent(gpu.utilization_percent)} of the time that was traced`;
    const why = VERDICTS[gpu.verdict];
    return why ? `${share}; ${why}.` : `${share}.`;
  }
  const [first] = DATA.report.summary.advice;
  const unknown = 'What the GPU did is not known for this job';
  return first ? `${unknown}; on the host, ${first.finding}.` : `${unknown}.`;
}

// Without GPU truth: what the processes that work spent their time on, as far as that is told.
function hostShares() {
  const { summary } = DATA.report;
  const rows = [['waited for the GPU', summary.sync_blocked_ms], ['waited for data', summary.data_wait_ms],
    ['all waits on the host', summary.host_wait_ms], ['garbage collection', summary.gc_ms]].filter(([, ms]) => ms > 0);
  if (!rows.length || !(summary.working_ms > 0)) return null;
  return el('div', '', el('h3', '', `Where the host was, in ${formatMs(summary.working_ms)} of the processes that work`),
    el('dl', 'pair', rows.map(([word, ms]) => [el('dt', '', word), el('dd', '', formatMs(ms))])),
    el('p', 'note', 'These may overlap.'));
}

function wholeBar() {
  const { gpu, causes } = DATA.report;
  const bar = attributes(el('div', 'whole'), { role: 'group', 'aria-label': 'Traced time: busy, and idle by cause' });
  const add = (ms, colour, light, name, share, onClick) => {
    if (!(ms > 0)) return;
    const piece = button('', `${name}: ${formatMs(ms)}`, onClick,
      el('span', light ? 'in light' : 'in', name, el('small', '', formatMs(ms))));
    piece.title = `${name}: ${formatMs(ms)}, ${share}`;
    piece.style.flexGrow = String(ms);
    piece.style.background = colour;
    bar.append(piece);
  };
  add(gpu.busy_ms, BUSY.kernel[1], true, 'busy', `${formatPercent(gpu.utilization_percent)} of traced time`, () => chooseCause(null));
  for (const row of causes) {
    add(row.total_ms, causeColour(row.cause), causeLight(row.cause), causeWord(row.cause), `${formatPercent(row.share_percent)} of idle time`, () => chooseCause(row.cause));
  }
  // A label that has no room says nothing; the legend below has it.
  const fit = () => {
    for (const label of bar.querySelectorAll('.in')) {
      label.hidden = false;
      label.hidden = label.scrollWidth > label.parentNode.clientWidth;
    }
  };
  redraws.push(fit);
  return bar;
}

function causeLegend() {
  const list = el('ul', 'legend');
  const buttons = new Map();
  for (const row of DATA.report.causes) {
    const node = button('', '', () => chooseCause(row.cause), causeChip(row.cause), causeWord(row.cause),
      el('span', 'figure', `${formatMs(row.total_ms)} \u00b7 ${formatPercent(row.share_percent)} of idle`));
    node.title = `${(CAUSES[row.cause] || CAUSES.unknown)[4]} Click: this cause alone, everywhere on the page.`;
    node.setAttribute('aria-pressed', 'false');
    buttons.set(row.cause, node);
    list.append(el('li', '', node));
  }
  causeListeners.push((chosen) => {
    for (const [cause, node] of buttons) node.setAttribute('aria-pressed', String(cause === chosen));
  });
  return list;
}

function fixes() {
  const { advice } = DATA.report.summary;
  if (!advice.length) return el('p', 'none', sentenceOf(DATA.lines.no_advice));
  const list = el('ol', 'fixes');
  for (const item of advice) {
    const text = item.advice.charAt(0).toUpperCase() + item.advice.slice(1);
    const excerpt = excerptAt(item.site);
    list.append(el('li', '',
      el('div', '', el('div', 'do', text), el('div', 'why', item.finding),
        excerpt ? el('details', '', el('summary', '', 'Source, as it ran'), excerptNode(excerpt)) : null),
      el('div', 'win', item.win_ms > 0 ? ['up to ', formatMs(item.win_ms)] : '\u2013',
        el('small', '', item.of_gpu_time ? 'of GPU time to win' : 'of host time to win'))));
  }
  return list;
}

function answers() {
  const { lines } = DATA;
  const known = DATA.report.gpu.busy_ms !== null;
  return el('section', '',
    el('p', 'verdict', sentence()),
    el('p', '', known ? `${lines.busy}.` : lines.busy),
    known ? [wholeBar(), causeLegend()] : hostShares(),
    el('h3', '', 'What to change first'),
    fixes(),
    el('div', 'grey',
      [lines.phase, lines.coverage, lines.losses, lines.step_cost, lines.overhead, ...lines.remarks].filter(Boolean).map((line) => el('p', '', line))));
}
