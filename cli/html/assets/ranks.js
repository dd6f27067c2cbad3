// Who waited for whom, and who was late when: a map of rank by time.

const MOST_RANKS_DRAWN = 64;

// By what a rank cost the others in each stretch of time; the stronger the colour, the more.
function lateMap({ ranks, late_stretches: cells, looked_at: range, late_left_out: leftOut }) {
  const drawn = ranks.slice(0, MOST_RANKS_DRAWN).map((row) => row.rank).sort((a, b) => a - b);
  const rowOf = new Map(drawn.map((rank, row) => [rank, row]));
  const shown = cells.filter((cell) => rowOf.has(cell.rank));
  if (!shown.length) return null;
  const most = Math.max(...shown.map((cell) => cell.cost_to_others_ms));
  const canvas = attributes(el('canvas', ''), { role: 'img', 'aria-label': 'Which rank was late when' });
  const rowHeight = drawn.length > 16 ? 12 : 18;
  const left = 66;
  const bottom = 24;
  const height = drawn.length * rowHeight + bottom;
  let scale = 1;
  const xOf = (ms) => left + (ms - range.start_ms) * scale;

  function draw() {
    const { context, width } = prepare(canvas, height);
    scale = (width - left - 10) / Math.max(1e-9, range.end_ms - range.start_ms);
    context.font = `11px ${style('--sans')}`;
    context.fillStyle = style('--quiet');
    context.textAlign = 'right';
    const every = rowHeight < 14 ? 2 : 1;
    drawn.forEach((rank, row) => { if (row % every === 0) context.fillText(`rank ${rank}`, left - 8, (row + 0.5) * rowHeight + 4); });
    context.textAlign = 'left';
    const step = roundStep(range.end_ms - range.start_ms, Math.max(2, Math.floor((width - left) / 110)));
    for (let at = Math.ceil(range.start_ms / step) * step; at <= range.end_ms; at += step) {
      const text = axisLabel(at, step);
      if (xOf(at) + context.measureText(text).width < width) context.fillText(text, xOf(at), height - 6);
    }
    context.fillStyle = style('--track');
    drawn.forEach((_, row) => context.fillRect(left, row * rowHeight + 1, width - left - 10, rowHeight - 2));
    context.fillStyle = seriesColour(5);
    for (const cell of shown) {
      context.globalAlpha = 0.25 + 0.75 * cell.cost_to_others_ms / most;
      context.fillRect(xOf(cell.start_ms), rowOf.get(cell.rank) * rowHeight + 1, Math.max(2, cell.duration_ms * scale - 0.5), rowHeight - 2);
    }
    context.globalAlpha = 1;
    canvas.dataset.drawn = String(shown.length);
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const ms = range.start_ms + (event.clientX - box.left - left) / scale;
    const row = Math.floor((event.clientY - box.top) / rowHeight);
    return shown.find((cell) => rowOf.get(cell.rank) === row && cell.start_ms <= ms && ms < cell.start_ms + cell.duration_ms) || null;
  }
  canvas.addEventListener('pointermove', (event) => {
    const cell = at(event);
    if (!cell) return hideTip();
    return showTip(event, `rank ${cell.rank}, ${formatMs(cell.start_ms)} after the start: in ${cell.count === 1 ? 'one collective' : `${formatCount(cell.count)} collectives`} others waited ${formatMs(cell.cost_to_others_ms)} for it`,
      DATA.timeline.bands.length ? 'Click: the timeline of this time' : null);
  });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('click', (event) => {
    const cell = at(event);
    if (cell && DATA.timeline.bands.length) goToTime(cell.start_ms, cell.start_ms + cell.duration_ms);
  });
  redraws.push(draw);
  return [el('h3', '', 'Who was late when'), el('div', 'board', canvas),
    el('p', 'note', `Each cell is ${formatMs(shown[0].duration_ms)} of a rank; the stronger its colour, the more it cost the others, at most ${formatMs(most)}.${drawn.length < ranks.length ? ` The ${drawn.length} ranks that cost most are drawn.` : ''}${leftOut ? ` ${formatCount(leftOut)} cells that cost less are left out.` : ''}`)];
}

function clockNote({ clock }) {
  if (clock.error_kind === 'fiducial') return `Collectives end together on all ranks, here within ${formatMs(clock.error_ns / 1e6)}; nobody is named for less.`;
  if (clock.error_kind === 'bound') return clock.error_ns > 0 ? `Clocks of hosts are compared to within ${formatMs(clock.error_ns / 1e6)}; nobody is named for less.` : null;
  return 'How far clocks of ranks are apart is not known.';
}

function ranksSection() {
  const told = DATA.ranks;
  const about = 'Ranks wait for each other in collectives. Who came last, why, and what that cost the others.';
  if (!told) return named('Ranks', 0, about, none('No rank is known to have waited for another.'));
  const { ranks, story } = told;
  const all = ranks.length === told.world_size;
  const hosts = new Set(ranks.map((row) => row.host)).size > 1;
  return named('Ranks', told.world_size, about, el('div', '',
    story.length ? story.map((text) => el('p', 'story', text)) : none(`${all ? 'No rank' : 'None of these ranks'} was late for a cause that is known.`),
    lateMap(told),
    el('h3', '', 'By rank'),
    makeTable([
      column.rank(), ...(hosts ? [column.text('host', 'host')] : []),
      column.ms('step', 'step_ms', 'The median.'), column.count('late in', 'late_steps', `${told.steps_known ? 'Steps' : 'Collectives'} in which the others waited for it, for a cause that is known.`),
      column.ms('waited', 'waited_ms', 'For others, until the last one had come.'),
      column.ms('cost to others', 'cost_to_others_ms', 'What the others waited for it alone, added up.'),
      ...(told.on_device ? [column.ms('communicates', 'communication_ms', 'Kernels of communication ran on its device.'), column.ms('exposed', 'exposed_ms', 'The part of it in which none that computes did.')] : []),
      { label: 'mostly', wide: true, value: (r) => (r.culprits.length ? r.culprits[0].cause : ''), cell: (r) => (r.culprits.length ? el('div', '', `${r.culprits[0].cause.replace(/_/g, ' ')} `, r.culprits[0].file ? siteNode(r.culprits[0]) : null) : '\u2013') },
    ], ranks, { sort: hosts ? 5 : 4, label: 'ranks', total: told.world_size }),
    el('p', 'note', `${formatCount(told.collectives)} collectives. Waited for the last one without a cause that is known: ${formatMs(told.unexplained_ms)}; waits and communication of which nothing is told: ${formatMs(told.unmatched_ms)}.`,
      told.on_device ? ' By the kernels of NCCL, in the time that GPUs were traced.' : null),
    clockNote(told) ? el('p', 'note', clockNote(told)) : null,
    told.looked_at.cut ? el('p', 'note', `Only the last ${formatMs(told.looked_at.end_ms - told.looked_at.start_ms)} were looked at: there are too many events for more.`) : null));
}
