// Elements, made of text alone: what a program called itself is never read as markup.

// Characters that turn the direction of text would show other names and other code than those
// that ran.
function turnless(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`);
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(turnless(String(child))));
  }
  return node;
}

// el('p', 'note', 'text', child, ...)
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  return fill(node, children);
}

function attributes(node, values) {
  for (const [name, value] of Object.entries(values)) node.setAttribute(name, turnless(String(value)));
  return node;
}

function button(className, label, onClick, ...children) {
  const node = attributes(el('button', className, ...children), { type: 'button' });
  if (label) node.setAttribute('aria-label', label);
  node.addEventListener('click', onClick);
  return node;
}

function withTip(tip, ...children) {
  return tip ? attributes(el('abbr', '', ...children), { title: tip }) : el('span', '', ...children);
}

function causeChip(cause) {
  const entry = CAUSES[cause] || CAUSES.unknown;
  const chip = el('span', entry[3] ? 'chip light' : 'chip', entry[1]);
  chip.style.background = entry[2];
  chip.setAttribute('aria-hidden', 'true');
  return chip;
}

function causeLabel(cause) {
  return attributes(el('span', 'cause', causeChip(cause), causeWord(cause)),
    { title: (CAUSES[cause] || CAUSES.unknown)[4] });
}

function siteText(site) {
  if (!site) return '(unknown)';
  let text = site.file ? shortPath(site.file) : '';
  if (site.file && site.line > 0) text += `:${site.line}`;
  if (site.function) text += `${text ? ' ' : ''}${shortFunction(site.function)}`;
  return text || '(unknown)';
}

// file:line function, the whole of it on hover.
function siteNode(site) {
  if (!site || (!site.file && !site.function)) return el('span', 'where', '(unknown)');
  const place = site.file ? shortPath(site.file) + (site.line > 0 ? `:${site.line}` : '') : '';
  const node = el('span', 'where', place, place && site.function ? ' ' : '',
    site.function ? el('span', 'fn', shortFunction(site.function)) : null,
    site.forward_site ? [' of ', siteText(site.forward_site)] : null);
  node.title = turnless(`${site.file || ''}${site.line > 0 ? `:${site.line}` : ''} ${site.function || ''}`.trim());
  return node;
}

// Frames by number, the innermost first.
function stackNode(numbers, native) {
  const list = el('ol', 'stack');
  for (const number of numbers || []) {
    const frame = DATA.frames[number] || {};
    const at = frame.file ? `${frame.file}${frame.line > 0 ? `:${frame.line}` : ''}` : frame.module || '';
    list.append(el('li', native ? 'native' : '', el('span', 'fn', frame.function || '(unknown)'),
      at ? el('span', 'at', `  ${at}`) : null));
  }
  return list;
}

// The source text that was kept, by file and line.
let excerpts = null;
function excerptAt(site) {
  if (!site || !site.file || !(site.line > 0)) return null;
  if (!excerpts) {
    excerpts = new Map();
    for (const one of [...DATA.report.sources, ...DATA.sources]) excerpts.set(`${one.line} ${one.file}`, one);
  }
  return excerpts.get(`${site.line} ${site.file}`) || null;
}

function excerptNode(excerpt) {
  const code = el('pre', 'code', excerpt.lines.map((line, at) => {
    const number = excerpt.first_line + at;
    return el('span', number === excerpt.line ? 'line hit' : 'line', el('span', 'number', String(number)), `${line}\n`);
  }));
  attributes(code, { tabindex: '0', 'aria-label': `Source of ${shortPath(excerpt.file)}, line ${excerpt.line}` });
  return el('div', 'excerpt', el('div', 'at', `${shortPath(excerpt.file)}:${excerpt.line}`), code);
}

// Of all sites that a row names, each once.
function excerptsOf(row) {
  const sites = [row, row.site, row.culprit, row.before, row.after, ...(row.doing || [])].filter(Boolean);
  const all = sites.flatMap((site) => [site, site.forward_site, site.backward_of, site.callee]).map(excerptAt);
  return [...new Set(all)].filter(Boolean);
}

function stacksOf(row) {
  const kept = excerptsOf(row);
  const source = kept.length ? [el('h3', '', 'Source, as it ran'), kept.map(excerptNode)] : null;
  const python = row.stack && row.stack.length ? [el('h3', '', 'Python stack, innermost first'), stackNode(row.stack)] : null;
  const native = row.native_stack && row.native_stack.length
    ? el('details', '', el('summary', '', `Native stack (${row.native_stack.length} frames)`), stackNode(row.native_stack, true)) : null;
  return source || python || native ? el('div', '', source, python, native) : null;
}

function shareBar(percent, colour) {
  const bar = el('span', 'share', el('i', ''));
  bar.firstChild.style.width = `${Math.max(0, Math.min(100, percent || 0))}%`;
  if (colour) bar.firstChild.style.background = colour;
  return bar;
}

// One tooltip for all canvases.
const tip = attributes(el('div', 'tip'), { role: 'status' });
tip.hidden = true;
function showTip(event, ...lines) {
  tip.replaceChildren(...lines.filter(Boolean).map((line) => el('div', '', line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const below = event.clientY + 18;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${below + box.height > window.innerHeight ? event.clientY - box.height - 12 : below}px`;
}
function hideTip() { tip.hidden = true; }

// Colours of the style sheet, for canvases.
let styleNow = null;
function style(name) {
  styleNow = styleNow || getComputedStyle(document.documentElement);
  return styleNow.getPropertyValue(name).trim();
}

// A canvas in pixels of the screen; returns its context in those of the page.
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || canvas.parentNode.clientWidth || 600;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width };
}

// Who draws anew when the theme or the width changes.
const redraws = [];
let pending = false;
function redrawAll() {
  styleNow = null;
  for (const draw of redraws) draw();
}
function redrawSoon() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; redrawAll(); });
}

// The cause that is looked at, everywhere on the page; null: all.
let chosenCause = null;
const causeListeners = [];
function chooseCause(cause) {
  chosenCause = chosenCause === cause ? null : cause;
  for (const listener of causeListeners) listener(chosenCause);
}
