// Puts the page together.

let DATA = JSON.parse(document.getElementById('lull-data').textContent);

function stored(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch (error) { /* a browser that keeps nothing for files: fine */ }
  return null;
}

const darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
function themeNow() { return stored('lull-theme') || (darkQuery.matches ? 'dark' : 'light'); }
function applyTheme(theme) {
  document.documentElement.dataset.theme = theme || themeNow();
  redrawSoon();
}
applyTheme();
darkQuery.addEventListener('change', () => applyTheme());

const SECTIONS = [
  ['timeline', () => named('Timeline', null, 'Each device over time: busy by kind of work, idle by cause.', timelineSection())],
  ['idle', gapsSection], ['syncs', syncsSection], ['host', hotSection], ['kernels', kernelsSection],
  ['operators', operatorsSection], ['steps', stepsSection], ['ranks', ranksSection], ['memory', memorySection], ['data', dataSection],
  ['regions', regionsSection], ['waits', waitsSection], ['gc', gcSection], ['allocations', allocationsSection],
  ['processes', processesSection], ['measuring', measuringSection], ['words', wordsSection],
];

function jobHead() {
  const { job } = DATA.report;
  return el('header', 'job', el('h1', '', job.name || `Job ${job.id.slice(0, 8)}`), el('p', '', DATA.lines.job),
    el('p', '', [job.host ? `on ${job.host}` : null, job.started_at ? `started ${job.started_at.replace('T', ' ').replace(/[.].*/, '')} UTC` : null].filter(Boolean).join(', ')));
}

// What a page shows; those of `lull web` add theirs.
const KINDS = { report: buildReport };
function build() { KINDS[DATA.kind](); }

function buildReport() {
  document.title = turnless(`${DATA.report.job.name || DATA.report.job.id.slice(0, 8)} \u00b7 lull`);
  const links = el('nav', '', el('span', 'brand', 'lull'), attributes(el('a', '', 'Answers'), { href: '#answers' }));
  attributes(links, { 'aria-label': 'Sections' });
  const first = answers();
  first.id = 'answers';
  const main = el('main', '', jobHead(), first);
  if (!DATA.complete) main.append(el('p', 'note', 'The collector is older than this lull: it tells no timeline, and nothing of steps, memory and samples in detail.'));
  for (const [id, make] of SECTIONS) {
    const { text, count, about, body } = make();
    const empty = count === 0;  // what was not seen takes little room
    const section = attributes(el('section', empty ? 'empty' : '', el('h2', '', text), empty ? null : el('p', 'about', about), body), { 'aria-label': text });
    section.id = id;
    main.append(section);
    links.append(attributes(el('a', empty ? 'empty' : '', text, count === null ? null : el('span', 'count', grouped(count))), { href: `#${id}` }));
  }
  links.append(el('div', 'tools', themeButton(), button('', 'Words', () => document.getElementById('words').scrollIntoView(), '?')));
  show(links, main);
  follow(links, main);
}

function themeButton() {
  const theme = button('', 'Light or dark', () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    stored('lull-theme', next);
    applyTheme(next);
  }, '\u25d0');
  theme.id = 'theme';
  return theme;
}

function show(links, main) {
  if (typeof servedLinks === 'function') links.querySelector('.brand').after(servedLinks());
  document.getElementById('page').replaceChildren(links, main);
  document.body.append(tip);
}

// The link of the section that is on the screen.
function follow(links, main) {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.querySelectorAll('a')) {
        const current = link.hash === `#${entry.target.id}`;
        link.setAttribute('aria-current', String(current));
        if (current) links.scrollTo({ left: link.offsetLeft - links.clientWidth / 3 });  // of a phone
      }
    }
  }, { rootMargin: '-10% 0px -75% 0px' });
  for (const section of main.querySelectorAll('section')) watcher.observe(section);
}

document.addEventListener('keydown', (event) => {
  if (event.target.closest('input, select, canvas') || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    const box = [...document.querySelectorAll('input[type="search"]')].find((one) => one.getBoundingClientRect().bottom > 60);
    if (box) { event.preventDefault(); box.focus(); }
  } else if (event.key === '?') {
    document.getElementById('words')?.scrollIntoView();
  } else if (event.key === 'Escape' && chosenCause) {
    chooseCause(chosenCause);
  }
});
window.addEventListener('resize', redrawSoon);

// On paper everything is open, and light.
let unfoldedForPrint = [];
window.addEventListener('beforeprint', () => {
  unfoldedForPrint = [...document.querySelectorAll('details:not([open])')];
  for (const fold of unfoldedForPrint) fold.open = true;
  document.documentElement.dataset.theme = 'light';
  redrawAll();
});
window.addEventListener('afterprint', () => {
  for (const fold of unfoldedForPrint) fold.open = false;
  applyTheme();
});

// Heads and sections of pages that have few of them.
function showSections(title, head, sections) {
  document.title = turnless(`${title} \u00b7 lull`);
  const links = attributes(el('nav', '', el('span', 'brand', 'lull')), { 'aria-label': 'Sections' });
  const main = el('main', '', head);
  for (const [id, { text, count, about, body }] of sections) {
    const section = attributes(el('section', '', el('h2', '', text), about ? el('p', 'about', about) : null, body), { 'aria-label': text });
    section.id = id;
    main.append(section);
    links.append(attributes(el('a', '', text, count === null ? null : el('span', 'count', grouped(count))), { href: `#${id}` }));
  }
  links.append(el('div', 'tools', themeButton()));
  show(links, main);
}
