// Paints bands. Far away each column of pixels is a stack of shares; near by every gap is a
// rectangle of its own.

const BAND = { label: 17, bar: 26, gap: 9, step: 15, axis: 22 };  // pixels
const MOST_RECTANGLES = 3000;

function classColour(kind) {
  if (kind === 0) return BUSY.kernel[1];
  if (kind === 1) return BUSY.copy[1];
  return causeColour(CAUSE_ORDER[kind - 2]);
}

// Which classes stand out while one cause is chosen.
function classAlpha(kind) {
  if (!chosenCause) return 1;
  return kind >= 2 && CAUSE_ORDER[kind - 2] === chosenCause ? 1 : 0.16;
}

function paintColumns(context, sums, width, top, height) {
  // By class, so that the colour changes seldom; neighbours of one height are one rectangle.
  const base = new Float32Array(width);
  for (let kind = 0; kind < CLASSES; ++kind) {
    context.fillStyle = classColour(kind);
    context.globalAlpha = classAlpha(kind);
    for (let x = 0; x < width;) {
      const share = sums[x * CLASSES + kind];
      if (share <= 0) { ++x; continue; }
      let end = x + 1;
      while (end < width && base[end] === base[x] && sums[end * CLASSES + kind] === share) ++end;
      const y = top + height * (1 - Math.min(1, base[x] + share));
      context.fillRect(x, y, end - x, height * Math.min(share, 1 - base[x]));
      for (let i = x; i < end; ++i) base[i] = Math.min(1, base[i] + share);
      x = end;
    }
  }
  context.globalAlpha = 1;
}

function paintGaps(context, model, band, view, width, top, height) {
  const [first, end] = band.visible(view.from, view.to);
  const scale = width / (view.to - view.from);
  for (let i = first; i < end; ++i) {
    const kind = 2 + band.causes[i];
    const x = (band.starts[i] - view.from) * scale;
    const wide = Math.max(1, band.durations[i] * scale - (band.durations[i] * scale > 4 ? 0.5 : 0));
    context.globalAlpha = 1;
    context.fillStyle = style('--ground');
    context.fillRect(x, top, wide, height);
    context.globalAlpha = classAlpha(kind);
    context.fillStyle = classColour(kind);
    context.fillRect(x, top, wide, height);
    if (wide > 60) {
      context.globalAlpha = 1;
      context.fillStyle = causeLight(CAUSE_ORDER[kind - 2]) ? '#fff' : '#000';
      context.font = `11px ${style('--sans')}`;
      const text = `${causeWord(CAUSE_ORDER[kind - 2])} ${formatMs(band.durations[i] * model.tick)}`;
      if (context.measureText(text).width < Math.min(x + wide, width) - Math.max(x, 0) - 10) context.fillText(text, Math.max(x, 0) + 5, top + height / 2 + 4);
    }
  }
  context.globalAlpha = 1;
}

function paintBand(context, model, band, view, width, top) {
  context.fillStyle = style('--track');
  context.fillRect(0, top, width, BAND.bar);
  const [first, end] = band.visible(view.from, view.to);
  const near = end - first <= MOST_RECTANGLES && (view.to - view.from) / width < model.bin;
  if (near && model.complete) {
    // Busy time as a ground, and each gap upon it.
    const busy = columnsOf(model, band, view.from, view.to, width);
    paintColumns(context, busy, width, top, BAND.bar);
    paintGaps(context, model, band, view, width, top, BAND.bar);
    return;
  }
  paintColumns(context, columnsOf(model, band, view.from, view.to, width), width, top, BAND.bar);
  // Where not all gaps are on the page, those that are stand on the bins' shares.
  if (near) paintGaps(context, model, band, view, width, top + BAND.bar * 0.3, BAND.bar * 0.7);
}

function stepsOf(model, band) {
  return model.steps.find((row) => row.pid === band.pid);
}

// Where steps lie, with numbers where there is room.
function paintSteps(context, model, steps, view, width, top) {
  const scale = width / (view.to - view.from);
  context.font = `10px ${style('--sans')}`;
  const first = Math.max(0, upperBound(steps.start, view.from) - 1);
  const last = upperBound(steps.start, view.to);
  if ((last - first) * 4 > width) return;
  for (let i = first; i < last; ++i) {
    const x = (steps.start[i] - view.from) * scale;
    const wide = steps.duration[i] * scale;
    if (x + wide < 0) continue;
    context.fillStyle = style(steps.number[i] % 2 ? '--track' : '--line');
    context.fillRect(x, top, Math.max(1, wide - 1), BAND.step - 3);
    const text = `step ${steps.number[i]}`;
    if (wide > context.measureText(text).width + 8) {
      context.fillStyle = style('--quiet');
      context.fillText(text, Math.max(0, x) + 4, top + BAND.step - 6);
    }
  }
}

// Round numbers of ticks: 1, 2 or 5 times a power of ten, of milliseconds.
function roundStep(span, count) {
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
}

function axisLabel(ms, step) {
  if (step >= 60e3) return formatMs(ms);
  const [unit, size] = step >= 1000 || ms >= 10e3 ? ['s', 1000] : step >= 1e-2 ? ['ms', 1] : ['\u00b5s', 1e-3];
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  const [whole, part] = (ms / size).toFixed(digits).split('.');
  return `${grouped(Number(whole))}${part ? `.${part}` : ''} ${unit}`;
}

function paintAxis(context, model, view, width, top) {
  const span = (view.to - view.from) * model.tick;
  const step = roundStep(span, Math.max(2, Math.floor(width / 110)));
  context.fillStyle = style('--quiet');
  context.strokeStyle = style('--line');
  context.font = `11px ${style('--sans')}`;
  for (let ms = Math.ceil(view.from * model.tick / step) * step; ms <= view.to * model.tick; ms += step) {
    const x = (ms - view.from * model.tick) / span * width;
    context.beginPath();
    context.moveTo(x + 0.5, top);
    context.lineTo(x + 0.5, top + 5);
    context.stroke();
    const text = axisLabel(ms, step);
    if (x + context.measureText(text).width + 4 < width) context.fillText(text, x + 4, top + 14);
  }
}
