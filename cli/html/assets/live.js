// Pages of `lull web`. One of what goes on asks for newer data, of the same address, and
// draws itself anew; once somebody has done something on it, it only offers to.

const ASK_EVERY_MS = 2000;
// All of them are in one folder.
function addressOf(page) { return `/${location.pathname.split('/')[1]}/${page}`; }

let known = null;     // the ETag of what is shown, once it was asked for
let newer = null;     // what came and is not shown yet
let touched = false;  // since it was drawn
let paused = false;

for (const kind of ['click', 'keydown', 'input', 'wheel']) {
  document.addEventListener(kind, (event) => {
    // A wheel that only scrolls the page is none.
    if (event.target.closest('main') && (kind !== 'wheel' || event.defaultPrevented)) touched = true;
  }, { passive: true });
}

function say(...words) { document.getElementById('live').replaceChildren(...words); }

function servedLinks() {
  const jobs = attributes(el('a', '', 'All jobs'), { href: addressOf('') });
  if (!DATA.live) return jobs;
  const state = attributes(el('span', '', 'live'), { role: 'status' });
  state.id = 'live';
  const pause = button('', 'Pause or go on', () => {
    paused = !paused;
    pause.textContent = paused ? '\u25b6' : '\u2016';
    say(paused ? 'paused' : 'live');
  }, '\u2016');
  return el('div', '', DATA.kind === 'jobs' ? null : jobs, el('div', 'live', state, pause));
}

function drawAnew() {
  const at = window.scrollY;
  DATA = newer;
  newer = null;
  touched = false;
  redraws.length = 0;
  causeListeners.length = 0;
  chosenCause = null;
  excerpts = null;
  build();
  redrawAll();
  window.scrollTo(0, at);
}

async function askOnce() {
  const answer = await fetch(`${location.pathname.replace(/[/]$/, '')}/data`,
    { headers: known ? { 'If-None-Match': known } : {}, cache: 'no-store', redirect: 'error' });
  if (answer.ok) {
    const data = await answer.json();
    if (paused) return;
    known = answer.headers.get('ETag');
    newer = data;
  }
  if (paused) return;
  if (answer.status === 403) say('lull web was started anew: open its new address');
  else if (!answer.ok && answer.status !== 304) say(`No newer data: ${await answer.text()}`);
  else if (!newer) say('live');
  else if (touched) say(button('link', '', drawAnew, 'show what is new'));
  else drawAnew();
}

// Seldom, where an answer takes its time: a page that is left open keeps nobody busy for
// more than a fiftieth of the time. But not for ever: one answer that took a minute, as
// after a host that slept, says nothing of the next.
const IDLE_TIMES = 50;
const ASK_AT_LEAST_EVERY_MS = 300000;

async function askAgain() {
  const began = performance.now();
  if (!paused && !document.hidden) {
    try { await askOnce(); } catch (error) { say('lull web does not answer'); }
  }
  if (!DATA.live) return;
  const pause = Math.min(ASK_AT_LEAST_EVERY_MS,
    Math.max(ASK_EVERY_MS, IDLE_TIMES * (performance.now() - began)));
  document.getElementById('live').title = `asks every ${formatMs(pause)}`;
  setTimeout(askAgain, pause);
}

if (DATA.live) setTimeout(askAgain, ASK_EVERY_MS);
