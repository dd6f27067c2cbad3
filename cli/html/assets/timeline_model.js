// The timeline's numbers: bins and gaps of each band, and their sums over any stretch of
// time. All times in ticks after the start of the job.

function runningSum(distances) {
  const times = new Float64Array(distances.length);
  let at = 0;
  for (let i = 0; i < distances.length; ++i) times[i] = at += distances[i];
  return times;
}

// The first index whose value is greater than `value`.
function upperBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
}

function makeBand(raw, causeOfKind) {
  const starts = runningSum(raw.gap_start);
  const durations = Float64Array.from(raw.gap_duration);
  const kinds = Uint32Array.from(raw.gap_kind);
  const causes = Uint8Array.from(kinds, (kind) => causeOfKind[kind]);
  const idle = CAUSE_ORDER.map(() => null);
  for (const row of raw.causes) idle[CAUSE_ORDER.indexOf(row.cause)] = Float64Array.from(row.idle);
  return {
    pid: raw.pid, rank: raw.rank, device: raw.device, starts, durations, kinds, causes, idle,
    traced: Float64Array.from(raw.traced), busy: Float64Array.from(raw.busy), kernel: Float64Array.from(raw.kernel),
    name: `${raw.rank === null ? `process ${raw.pid}` : `rank ${raw.rank}`} \u00b7 GPU ${raw.device}`,
    // Gaps that overlap a stretch: those that start in it, and the one before.
    visible(from, to) {
      let first = upperBound(starts, from);
      if (first > 0 && starts[first - 1] + durations[first - 1] > from) --first;
      return [first, upperBound(starts, to)];
    },
    at(time) {
      const i = upperBound(starts, time) - 1;
      return i >= 0 && time <= starts[i] + durations[i] ? i : -1;
    },
    // The gap that is drawn at `time`, where one pixel is `slack` wide.
    near(time, slack) {
      const exact = this.at(time);
      if (exact >= 0) return exact;
      let best = -1;
      const [first, end] = this.visible(time - slack, time + slack);
      for (let i = first; i < end; ++i) if (best < 0 || durations[i] > durations[best]) best = i;
      return best;
    },
  };
}

function makeTimeline(raw) {
  const tick = raw.tick_ns / 1e6;  // in ms
  const causeOfKind = raw.kinds.map((kind) => Math.max(0, CAUSE_ORDER.indexOf(kind.cause)));
  return {
    tick,
    start: raw.start_ms / tick, end: raw.end_ms / tick, bin: raw.bin_ms / tick,
    kinds: raw.kinds,
    bands: raw.bands.map((band) => makeBand(band, causeOfKind)),
    steps: raw.steps.map((row) => ({
      pid: row.pid, rank: row.rank, count: row.count, number: row.number,
      start: runningSum(row.start), duration: Float64Array.from(row.duration),
    })),
    complete: raw.left_out === 0 && raw.looked_at.length === 0,
    raw,
  };
}

// Shares of each of `width` columns of [from, to): first kernels, then other work, then the
// causes in their order; the rest was not traced.
const CLASSES = 2 + CAUSE_ORDER.length;
function columnsOf(model, band, from, to, width) {
  const sums = new Float32Array(width * CLASSES);
  const perColumn = (to - from) / width;
  const spread = (begin, end, perTick, kind) => {
    let x = Math.max(0, Math.floor((begin - from) / perColumn));
    for (; x < width; ++x) {
      const left = Math.max(begin, from + x * perColumn);
      const right = Math.min(end, from + (x + 1) * perColumn);
      if (right > left) sums[x * CLASSES + kind] += (right - left) * perTick / perColumn;
      if (end <= from + (x + 1) * perColumn) break;
    }
  };
  const fromBins = perColumn >= model.bin || !model.complete;
  const first = Math.max(0, Math.floor((from - model.start) / model.bin));
  const last = Math.min(band.traced.length, Math.ceil((to - model.start) / model.bin));
  const busyOf = new Float32Array(width * 2);
  for (let i = first; i < last; ++i) {
    const begin = model.start + i * model.bin;
    const end = begin + model.bin;
    const busy = band.busy[i] || 0;
    const kernel = band.kernel[i] || 0;
    if (fromBins) {
      spread(begin, end, kernel / model.bin, 0);
      spread(begin, end, (busy - kernel) / model.bin, 1);
      for (let cause = 0; cause < CAUSE_ORDER.length; ++cause) {
        const idle = band.idle[cause] && band.idle[cause][i];
        if (idle) spread(begin, end, idle / model.bin, 2 + cause);
      }
    } else {
      // Nearer than a bin: traced time as a whole, of which the gaps are taken below.
      const x0 = Math.max(0, Math.floor((begin - from) / perColumn));
      const x1 = Math.min(width, Math.ceil((end - from) / perColumn));
      for (let x = x0; x < x1; ++x) {
        busyOf[2 * x] = Math.max(busyOf[2 * x], Math.min(1, (band.traced[i] || 0) / model.bin));
        busyOf[2 * x + 1] = busy > 0 ? kernel / busy : 1;
      }
    }
  }
  if (!fromBins) {
    const [begin, end] = band.visible(from, to);
    for (let i = begin; i < end; ++i) {
      spread(band.starts[i], band.starts[i] + band.durations[i], 1, 2 + band.causes[i]);
    }
    for (let x = 0; x < width; ++x) {
      let idle = 0;
      for (let kind = 2; kind < CLASSES; ++kind) idle += sums[x * CLASSES + kind];
      const busy = Math.max(0, busyOf[2 * x] - idle);
      sums[x * CLASSES] = busy * busyOf[2 * x + 1];
      sums[x * CLASSES + 1] = busy * (1 - busyOf[2 * x + 1]);
    }
  }
  return sums;
}
