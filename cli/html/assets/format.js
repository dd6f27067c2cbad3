// Numbers as lull writes them in its text: three digits, a space, a unit.

// As printf, which rounds what lies exactly in the middle to the even digit: 5.125 is 5.12.
function fixed(value, digits) {
  const up = value.toFixed(digits);
  const whole = value.toFixed(60);  // exact
  const cut = whole.indexOf('.') + (digits === 0 ? 0 : 1 + digits);
  const isMiddle = /^50*$/.test(whole.slice(cut).replace('.', ''));
  return isMiddle && Number(up.at(-1)) % 2 === 1 ? whole.slice(0, cut) : up;
}

function threeDigits(value) {
  if (value < 9.995) return fixed(value, 2);
  if (value < 99.95) return fixed(value, 1);
  return fixed(value, 0);
}

function grouped(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

// null is what nobody knows: never 0.
function formatMs(ms) {
  if (ms === null || ms === undefined) return '\u2013';
  const ns = Math.round(ms * 1e6);
  if (ns < 1000) return `${ns} ns`;
  if (ns < 999.5e3) return `${threeDigits(ns / 1e3)} \u00b5s`;
  if (ns < 999.5e6) return `${threeDigits(ns / 1e6)} ms`;
  if (ns < 119.95e9) return `${threeDigits(ns / 1e9)} s`;
  const minutes = Math.round(ns / 60e9);
  const two = (n) => String(n).padStart(2, '0');
  if (minutes < 120) {
    const seconds = Math.round(ns / 1e9);
    return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  }
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return '\u2013';
  let value = Math.abs(bytes);
  const sign = bytes < 0 ? '-' : '';
  if (value < 1024) return `${sign}${Math.trunc(value)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  for (value /= 1024; value >= 1023.5 && unit + 1 < units.length; value /= 1024) ++unit;
  return `${sign}${threeDigits(value)} ${units[unit]}`;
}

function formatCount(count) {
  return count === null || count === undefined ? '\u2013' : grouped(count);
}

function formatPercent(percent) {
  if (percent === null || percent === undefined) return '\u2013';
  return percent < 9.995 ? `${percent.toFixed(2)} %` : `${percent.toFixed(1)} %`;
}

function formatNumber(value, digits) {
  return value === null || value === undefined ? '\u2013' : value.toFixed(digits);
}

// The end of a path that still says which file it is.
function shortPath(path) {
  for (const folder of ['/site-packages/', '/dist-packages/']) {
    const at = path.lastIndexOf(folder);
    if (at >= 0) return path.slice(at + folder.length);
  }
  if (path.length <= 44) return path;
  const parts = path.split('/');
  let text = parts.pop();
  while (parts.length && text.length + parts[parts.length - 1].length < 44) {
    text = `${parts.pop()}/${text}`;
  }
  return `\u2026/${text}`;
}

// Of a kernel's name, where it stands in PyTorch's sources.
function withoutPyTorch(name) {
  return name.replace(/at::native::|\(anonymous namespace\)::|<unnamed>::/g, '');
}

// What tells kernels apart: those of one template differ in its arguments alone.
function shortKernel(name) {
  let text = name.replace(/^void /, '');
  if (text.endsWith(')')) {
    let depth = 0;
    for (let i = text.length - 1; i > 0; --i) {
      if (text[i] === ')') ++depth;
      if (text[i] === '(' && --depth === 0) { text = text.slice(0, i); break; }
    }
  }
  text = withoutPyTorch(text);
  return text.length > 160 ? `${text.slice(0, 157)}\u2026` : text;
}

// Without what it returns, its parameters and template arguments: what a reader recognises
// a function by.
function shortFunction(name) {
  let text = '';
  let depth = 0;
  for (let i = 0; i < name.length; ++i) {
    const letter = name[i];
    if (letter === '<' && text && !text.endsWith('operator')) { ++depth; continue; }
    if (letter === '>' && depth > 0) { --depth; continue; }
    if (depth > 0) continue;
    if (letter === '(' && text && !name.startsWith('(anonymous namespace)', i)) break;
    text += letter;
  }
  text = text.replace(/^(void|int|bool) /, '').trim();
  if (depth !== 0 || !text) text = name;
  return text.length > 90 ? `${text.slice(0, 87)}\u2026` : text;
}
