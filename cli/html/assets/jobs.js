// The list of jobs, of `lull web`.

// As `lull jobs` says it (daemon/words/step_words.cc).
function jobState(job) {
  const since = job.since_step_ms;
  if (!job.ended && since >= 5000 && since >= 5 * job.step_ms) return `no step for ${formatMs(since)}`;
  if (!job.ended) return job.armed ? 'running' : 'asleep';
  if (!job.end_seen) return 'unseen';
  if (job.imported) return 'imported';
  if (job.attached) return 'attached';
  return job.exit_status === null ? 'unknown' : String(job.exit_status);
}

const marks = (job) => [...(job.pinned ? ['pinned'] : []), ...job.tags].join(', ');

function buildJobs() {
  const chosen = new Set();
  const compare = el('a', 'action', 'Compare them');
  const told = el('span', 'note', 'Choose two jobs to compare, the earlier one first.');
  compare.hidden = true;
  const choose = (job, box) => {
    if (box.checked) chosen.add(job.id); else chosen.delete(job.id);
    const [a, b] = [...chosen];
    compare.hidden = chosen.size !== 2;
    told.hidden = chosen.size === 2;
    compare.href = addressOf(`diff?a=${a}&b=${b}`);
  };
  const box = (job) => {
    const input = attributes(document.createElement('input'), { type: 'checkbox', 'aria-label': `Compare ${job.name || job.id.slice(0, 8)}` });
    input.checked = chosen.has(job.id);
    input.addEventListener('change', () => choose(job, input));
    return input;
  };
  const link = (job) => attributes(el('a', '', job.name || job.id.slice(0, 8)), { href: addressOf(`job/${job.id}`) });
  const started = (job) => (job.started_at || '').replace('T', ' ').replace(/[.].*/, '');
  const damaged = (DATA.damaged_jobs || []).map((id) => id.slice(0, 8)).join(', ');
  showSections('Jobs', el('header', 'job', el('h1', '', 'Jobs')), [['jobs', named('The newest first', DATA.jobs.length, null,
    el('p', '', told, compare), damaged ? el('p', 'note', `Not listed, as their rows in the database are damaged: ${damaged}`) : null,
    DATA.most ? el('p', 'note', `Only the newest ${formatCount(DATA.most)} are listed; all: lull jobs --top 0`) : null,
    orNone(DATA.jobs, 'Nothing was recorded yet.', () => makeTable([
      { label: '', value: () => null, cell: box },
      { label: 'job', value: (r) => r.name || r.id, cell: link },
      { label: 'started (UTC)', value: started, cell: started },
      column.ms('duration', 'duration_ms'), { label: 'exit', value: jobState, cell: jobState },
      column.count('processes', 'processes'), column.count('events', 'events'), column.text('host', 'host'),
      ...(DATA.jobs.some(marks) ? [{ label: 'tags', value: marks, cell: marks }] : []),
      { label: 'command', wide: true, value: (r) => r.command, cell: (r) => el('span', 'where', r.command) },
    ], DATA.jobs, { label: 'jobs' })))]]);
}

KINDS.jobs = buildJobs;
