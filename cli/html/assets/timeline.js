// The timeline: a strip of the whole job, bands of what is looked at, and what was clicked.

function timelineSection() {
  const raw = DATA.timeline;
  if (!raw.bands.length) {
    return el('p', 'none', DATA.report.gpu.missing ? DATA.lines.busy : 'No device was traced.');
  }
  const model = makeTimeline(raw);
  BAND.bar = model.bands.length <= 2 ? 46 : 26;
  const whole = { from: model.start, to: model.end };
  const view = { ...whole };
  const strip = attributes(el('canvas', 'strip'), { 'aria-hidden': 'true' });
  const canvas = attributes(el('canvas', ''), {
    tabindex: '0', role: 'img', id: 'timeline-canvas',
    'aria-label': 'Timeline of each device: busy, and idle by cause. Keys: w and s zoom, a and d move, arrows go from gap to gap, f shows the whole job. The tables below have the same in rows.',
  });
  const selected = attributes(el('div', 'selected', el('span', 'note', 'Click on a gap to see its cause, lines and stacks.')), { 'aria-live': 'polite' });
  const range = el('span', 'right');
  let chosen = null;  // {band, gap}
  let drag = null;    // {from, to, moved}

  const tops = [];
  function layout() {
    tops.length = 0;
    let y = 4;
    for (const band of model.bands) {
      const steps = stepsOf(model, band);
      tops.push({ label: y, steps: steps ? y + BAND.label : null, bar: y + BAND.label + (steps ? BAND.step : 0) });
      y += BAND.label + (steps ? BAND.step : 0) + BAND.bar + BAND.gap;
    }
    return y;
  }

  function drawStrip() {
    const height = 34;
    const { context, width } = prepare(strip, height);
    const pixels = Math.max(1, Math.floor(width));
    const sums = new Float32Array(pixels * CLASSES);
    for (const band of model.bands) {
      const one = columnsOf(model, band, whole.from, whole.to, pixels);
      for (let i = 0; i < sums.length; ++i) sums[i] += one[i] / model.bands.length;
    }
    context.fillStyle = style('--track');
    context.fillRect(0, 0, width, height);
    paintColumns(context, sums, pixels, 0, height);
    const scale = width / (whole.to - whole.from);
    const left = (view.from - whole.from) * scale;
    const right = (view.to - whole.from) * scale;
    context.fillStyle = style('--ground');
    context.globalAlpha = 0.62;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = style('--ink');
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), height - 1.5);
  }

  function drawBands() {
    const began = performance.now();
    const end = layout();
    const { context, width } = prepare(canvas, end + BAND.axis);
    const pixels = Math.max(1, Math.floor(width));
    context.font = `12px ${style('--sans')}`;
    model.bands.forEach((band, i) => {
      context.fillStyle = style('--quiet');
      context.font = `12px ${style('--sans')}`;
      context.fillText(band.name, 6, tops[i].label + 12);
      const steps = stepsOf(model, band);
      if (steps) paintSteps(context, model, steps, view, pixels, tops[i].steps);
      paintBand(context, model, band, view, pixels, tops[i].bar);
    });
    markSetup(context, width, end);
    if (chosen) outline(context, width);
    if (drag && drag.moved) {
      const scale = width / (view.to - view.from);
      context.fillStyle = style('--accent');
      context.globalAlpha = 0.18;
      context.fillRect((Math.min(drag.from, drag.to) - view.from) * scale, 0, Math.abs(drag.to - drag.from) * scale, end);
      context.globalAlpha = 1;
    }
    paintAxis(context, model, view, pixels, end);
    canvas.dataset.drawMs = (performance.now() - began).toFixed(2);
    range.textContent = `${formatMs((view.to - view.from) * model.tick)} shown, from ${formatMs(view.from * model.tick)}`;
  }

  function markSetup(context, width, end) {
    const setup = DATA.report.setup_ms;
    if (!setup || DATA.report.phase !== 'steady') return;
    const x = (setup / model.tick - view.from) * width / (view.to - view.from);
    if (x <= 0) return;
    context.fillStyle = style('--shade');
    context.fillRect(0, 0, Math.min(x, width), end);
    if (x > width) return;
    context.fillStyle = style('--quiet');
    context.fillRect(x, 0, 1, end);
    context.font = `11px ${style('--sans')}`;
    context.fillText('set-up \u2190', Math.max(2, x - 54), 12);
  }

  function outline(context, width) {
    const band = model.bands[chosen.band];
    const scale = width / (view.to - view.from);
    const x = (band.starts[chosen.gap] - view.from) * scale;
    context.strokeStyle = style('--ink');
    context.lineWidth = 2;
    context.strokeRect(x - 1, tops[chosen.band].bar - 2, Math.max(3, band.durations[chosen.gap] * scale + 2), BAND.bar + 4);
  }

  function draw() { drawBands(); drawStrip(); }
  let waiting = false;
  function drawNext() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function show(from, to) {
    const least = 10;  // ticks
    const span = Math.min(whole.to - whole.from, Math.max(least, to - from));
    const start = Math.min(Math.max(whole.from, from + (to - from - span) / 2), whole.to - span);
    view.from = start;
    view.to = start + span;
    drawNext();
  }
  const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (share) => { const by = (view.to - view.from) * share; show(view.from + by, view.to + by); };

  function timeAt(event) {
    const box = canvas.getBoundingClientRect();
    return view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
  }
  function bandAt(event) {
    const y = event.clientY - canvas.getBoundingClientRect().top;
    return tops.findIndex((top) => y >= top.label && y < top.bar + BAND.bar + 2);
  }
  function gapAt(event) {
    const band = bandAt(event);
    if (band < 0) return null;
    const slack = (view.to - view.from) / canvas.clientWidth * 2;
    const gap = model.bands[band].near(timeAt(event), slack);
    return gap < 0 ? null : { band, gap };
  }

  // What samples say of gaps like this one stands in the report's rows.
  function rowLike(kind) {
    const same = (a, b) => a && b && a.file === b.file && a.line === b.line && a.function === b.function;
    return DATA.report.gaps.find((row) => row.cause === kind.cause && same(row.before, kind.before)
      && same(row.after, kind.after) && same(row.culprit, kind.culprit));
  }
  function choose(what) {
    chosen = what;
    if (!what) { drawNext(); return; }
    const band = model.bands[what.band];
    const kind = model.kinds[band.kinds[what.gap]];
    const duration = band.durations[what.gap] * model.tick;
    const row = rowLike(kind);
    const steps = stepsOf(model, band);
    const step = steps ? upperBound(steps.start, band.starts[what.gap]) - 1 : -1;
    const known = kind.after && (kind.after.file || kind.after.function);
    selected.replaceChildren(
      el('div', 'head', causeLabel(kind.cause), el('span', '', formatMs(duration)),
        el('span', 'note', `${band.name}, ${formatMs(band.starts[what.gap] * model.tick)} after the start`
          + (step >= 0 && band.starts[what.gap] < steps.start[step] + steps.duration[step] ? `, in step ${steps.number[step]}` : ''))),
      el('p', 'note', (CAUSES[kind.cause] || CAUSES.unknown)[4]),
      known ? el('dl', 'pair',
        el('dt', '', 'before'), el('dd', '', siteNode(kind.before)),
        el('dt', '', 'after'), el('dd', '', siteNode(kind.after)),
        kind.culprit && (kind.culprit.file || kind.api) ? [el('dt', '', 'due to'), el('dd', '', kind.api ? `${kind.api} at ` : '', siteNode(kind.culprit))] : null,
        el('dt', '', 'gaps like it'), el('dd', '', `${formatCount(kind.count)}, ${formatMs(kind.total_ms)} in all, the longest ${formatMs(kind.max_ms)}`))
        : el('p', 'note', 'Its lines are not on this page: there are too many kinds of gaps. lull gaps has them.'),
      row ? doingList(row) || '' : '',
      stacksOf(kind) || '',
      el('div', 'controls', button('', '', () => { const start = band.starts[what.gap]; const wide = band.durations[what.gap]; show(start - 3 * wide, start + 4 * wide); }, 'Zoom to it'),
        button('', '', () => chooseCause(kind.cause), 'This cause alone')));
    drawNext();
  }
  function nextGap(by) {
    const band = chosen ? chosen.band : 0;
    const gaps = model.bands[band];
    const from = chosen ? chosen.gap + by : gaps.visible(view.from, view.to)[0];
    for (let gap = from; gap >= 0 && gap < gaps.starts.length; gap += by) {
      if (chosenCause && CAUSE_ORDER[gaps.causes[gap]] !== chosenCause) continue;
      const start = gaps.starts[gap];
      if (start < view.from || start + gaps.durations[gap] > view.to) {
        const half = (view.to - view.from) / 2;
        show(start - half, start + half);
      }
      choose({ band, gap });
      return;
    }
  }

  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { from: timeAt(event), to: timeAt(event), x: event.clientX, moved: false };
  });
  canvas.addEventListener('pointermove', (event) => {
    if (drag) {
      drag.to = timeAt(event);
      drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 4;
      if (drag.moved) { hideTip(); drawNext(); }
      return;
    }
    const found = gapAt(event);
    if (!found) { hideTip(); return; }
    const band = model.bands[found.band];
    const kind = model.kinds[band.kinds[found.gap]];
    showTip(event, `${causeWord(kind.cause)}, ${formatMs(band.durations[found.gap] * model.tick)}`,
      kind.culprit && kind.culprit.file ? siteText(kind.culprit) : null);
  });
  canvas.addEventListener('pointerup', (event) => {
    const done = drag;
    drag = null;
    if (!done) return;
    if (done.moved) show(Math.min(done.from, done.to), Math.max(done.from, done.to));
    else choose(gapAt(event));
  });
  canvas.addEventListener('pointercancel', () => { drag = null; drawNext(); });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('dblclick', (event) => zoom(0.25, timeAt(event)));
  canvas.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.004), timeAt(event));
    } else if (event.deltaX) {
      event.preventDefault();
      move(event.deltaX / canvas.clientWidth);
    }
  }, { passive: false });
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      w: () => zoom(0.5), '+': () => zoom(0.5), s: () => zoom(2), '-': () => zoom(2),
      a: () => move(-0.25), d: () => move(0.25), f: () => show(whole.from, whole.to), 0: () => show(whole.from, whole.to),
      ArrowRight: () => nextGap(1), ArrowLeft: () => nextGap(-1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  let moving = false;
  const moveTo = (event) => {
    const box = strip.getBoundingClientRect();
    const at = whole.from + (event.clientX - box.left) / box.width * (whole.to - whole.from);
    const half = (view.to - view.from) / 2;
    show(at - half, at + half);
  };
  strip.addEventListener('pointerdown', (event) => { moving = true; strip.setPointerCapture(event.pointerId); moveTo(event); });
  strip.addEventListener('pointermove', (event) => { if (moving) moveTo(event); });
  strip.addEventListener('pointerup', () => { moving = false; });

  function showStep(number, pid) {
    for (const steps of model.steps) {
      if (pid !== undefined && steps.pid !== pid) continue;
      const i = steps.number.indexOf(number);
      if (i < 0) continue;
      show(steps.start[i] - steps.duration[i] * 0.05, steps.start[i] + steps.duration[i] * 1.05);
      return true;
    }
    return false;
  }
  goToStep = (number, pid) => {
    if (!showStep(number, pid)) return;
    document.getElementById('timeline').scrollIntoView();
    canvas.focus({ preventScroll: true });
  };
  goToTime = (from, to) => {
    show(from * 1e6 / raw.tick_ns, to * 1e6 / raw.tick_ns);
    document.getElementById('timeline').scrollIntoView();
    canvas.focus({ preventScroll: true });
  };
  const stepBox = attributes(el('input', ''), { type: 'number', min: '0', placeholder: 'step', 'aria-label': 'Zoom to a step', size: '7', id: 'step-box' });
  stepBox.addEventListener('change', () => {
    const found = showStep(Number(stepBox.value));
    stepBox.setCustomValidity(found ? '' : 'That step is not on this page');
    stepBox.reportValidity();
  });
  causeListeners.push(drawNext);
  redraws.push(draw);

  const notes = [];
  if (raw.left_out > 0) {
    notes.push(`The ${grouped(raw.gaps)} longest gaps are here one by one; ${grouped(raw.left_out)} shorter ones (none longer than ${formatMs(raw.longest_left_out_ms)}, ${formatMs(raw.left_out_ms)} in all) are in the bands\u2019 shares alone.`);
  }
  if (raw.looked_at.length) {
    notes.push(`There are more gaps than can be looked at: one by one they are known in ${raw.looked_at.length} stretches of ${formatMs(raw.looked_at[0].end_ms - raw.looked_at[0].start_ms)} each, spread evenly. The bands\u2019 shares have all of them.`);
  }
  return el('div', '',
    el('div', 'controls',
      button('', 'Zoom in', () => zoom(0.5), '+'), button('', 'Zoom out', () => zoom(2), '\u2212'),
      button('', 'Show the whole job', () => show(whole.from, whole.to), 'Whole job'),
      model.steps.length ? stepBox : null,
      el('span', 'keys', 'Drag to zoom; ', el('kbd', '', 'w'), ' ', el('kbd', '', 's'), ' zoom, ', el('kbd', '', 'a'), ' ', el('kbd', '', 'd'), ' move, ', el('kbd', '', '\u2190'), ' ', el('kbd', '', '\u2192'), ' gaps'),
      range),
    timelineLegend(model),
    el('div', 'board', strip, canvas),
    selected,
    notes.map((text) => el('p', 'note', text)));
}

let goToStep = () => {};
let goToTime = () => {};  // from, to: in ms after the start of the job

function timelineLegend(model) {
  const list = el('ul', 'legend');
  const plain = (colour, text) => {
    const chip = el('span', 'chip', '');
    chip.style.background = colour;
    list.append(el('li', 'cause', chip, text));
  };
  plain(BUSY.kernel[1], 'busy: kernels');
  plain(BUSY.copy[1], 'busy: copies and memsets');
  for (const cause of CAUSE_ORDER) {
    if (model.bands.some((band) => band.idle[CAUSE_ORDER.indexOf(cause)])) list.append(el('li', '', causeLabel(cause)));
  }
  plain('var(--track)', 'not traced');
  return list;
}
