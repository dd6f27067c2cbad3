// A small chart on a canvas: lines or points over time or steps, with what is under the
// pointer told.

// series: [{name, colour, x: [], y: [], line}]; options: height, xLabel(x), yLabel(y),
// marks: [{y, text}], onClick({series, index}).
function makeChart(series, options) {
  const canvas = attributes(el('canvas', ''), { role: 'img', 'aria-label': options.label });
  const all = series.filter((one) => one.x.length);
  const low = Math.min(...all.map((one) => one.x.reduce((a, b) => Math.min(a, b))));
  const high = Math.max(...all.map((one) => one.x.reduce((a, b) => Math.max(a, b))));
  const most = Math.max(...all.map((one) => one.y.reduce((a, b) => Math.max(a, b || 0), 0)), ...(options.marks || []).map((mark) => mark.y)) || 1;
  const left = 66;
  const bottom = 24;
  let scaleX = 1;
  let scaleY = 1;
  const height = options.height || 210;
  const xOf = (x) => left + (x - low) * scaleX;
  const yOf = (y) => height - bottom - y * scaleY;

  function grid(context, width) {
    context.font = `11px ${style('--sans')}`;
    context.textAlign = 'right';
    const step = options.yStep(most);
    for (let y = 0; y <= most * 1.05; y += step) {
      context.fillStyle = style('--line');
      context.fillRect(left, Math.round(yOf(y)), width - left, 1);
      context.fillStyle = style('--quiet');
      context.fillText(options.yLabel(y), left - 8, yOf(y) + 4);
    }
    context.textAlign = 'left';
    const stepX = roundStep(Math.max(1e-9, high - low), Math.max(2, Math.floor((width - left) / 110)));
    for (let x = Math.ceil(low / stepX) * stepX; x <= high; x += stepX) {
      const text = options.xLabel(x, stepX);
      if (xOf(x) + context.measureText(text).width < width) context.fillText(text, xOf(x), height - 6);
    }
  }

  function draw() {
    const { context, width } = prepare(canvas, height);
    scaleX = (width - left - 10) / Math.max(1e-9, high - low);
    scaleY = (height - bottom - 14) / most;
    grid(context, width);
    for (const one of all) {
      context.fillStyle = one.colour;
      context.strokeStyle = one.colour;
      context.lineWidth = 1.5;
      if (one.line) {
        context.beginPath();
        one.x.forEach((x, i) => (i ? context.lineTo(xOf(x), yOf(one.y[i])) : context.moveTo(xOf(x), yOf(one.y[i]))));
        context.stroke();
      } else {
        context.globalAlpha = 0.75;
        const dot = one.x.length > 300 ? 2.5 : 5;
        one.x.forEach((x, i) => context.fillRect(xOf(x) - dot / 2, yOf(one.y[i]) - dot / 2, dot, dot));
        context.globalAlpha = 1;
      }
    }
    for (const mark of options.marks || []) {
      context.strokeStyle = style('--quiet');
      context.setLineDash([4, 4]);
      context.beginPath();
      context.moveTo(left, yOf(mark.y));
      context.lineTo(width, yOf(mark.y));
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = style('--quiet');
      context.fillText(mark.text, left + 6, yOf(mark.y) - 4);
    }
    canvas.dataset.drawn = String(all.reduce((sum, one) => sum + one.x.length, 0));
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let distance = 400;
    for (const one of all) {
      for (let i = 0; i < one.x.length; ++i) {
        const d = (xOf(one.x[i]) - at[0]) ** 2 + (yOf(one.y[i]) - at[1]) ** 2;
        if (d < distance) { distance = d; best = { series: one, index: i }; }
      }
    }
    return best;
  }
  canvas.addEventListener('pointermove', (event) => {
    const hit = nearest(event);
    if (hit) showTip(event, ...options.tell(hit)); else hideTip();
  });
  canvas.addEventListener('pointerleave', hideTip);
  if (options.onClick) canvas.addEventListener('click', (event) => { const hit = nearest(event); if (hit) options.onClick(hit); });
  redraws.push(draw);
  return el('div', 'board', canvas);
}

const SERIES_COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c8c8c', '#a6761d'];
function seriesColour(i) { return SERIES_COLOURS[i % SERIES_COLOURS.length]; }
function bytesStep(most) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(Math.max(1, most)) / Math.log(1024)));
  return Math.max(1, roundStep(most / unit, 4) * unit);
}
