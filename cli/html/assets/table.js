// A table that sorts by any column, filters by text and cause, unfolds rows, and shows a
// few rows at first and then two hundred at a time.

const FIRST_ROWS = 12;
const ROWS_AT_ONCE = 200;
let tables = 0;

// columns: {label, tip, num, value(row), cell(row), wide}; options: sort (a column's
// number), ascending, inner(row) or null, cause(row), label.
function makeTable(columns, rows, options = {}) {
  const id = `table-${++tables}`;
  let sortBy = options.sort === undefined ? -1 : options.sort;
  let ascending = Boolean(options.ascending);
  let words = '';
  let shown = FIRST_ROWS;
  const body = el('tbody');
  const note = el('span', 'right');
  const more = button('', '', () => { shown += ROWS_AT_ONCE; draw(); }, '');
  const texts = new Map();

  const unfolds = options.inner && (!options.hasInner || rows.some(options.hasInner));

  const textOf = (row) => {
    if (!texts.has(row)) {
      texts.set(row, columns.map((column) => {
        const value = column.text ? column.text(row) : column.value(row);
        return value === null || value === undefined ? '' : String(value);
      }).join(' ').toLowerCase());
    }
    return texts.get(row);
  };
  const heads = columns.map((column, number) => {
    const head = el('th', column.num ? 'num' : column.wide ? 'wide' : '');
    head.setAttribute('scope', 'col');
    const sorter = button('', '', () => {
      ascending = sortBy === number ? !ascending : !column.num;
      sortBy = number;
      draw();
    }, column.label);
    if (column.tip) sorter.title = column.tip;
    head.append(sorter);
    return head;
  });

  function chosenRows() {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter((row) => (!options.cause || !chosenCause || options.cause(row) === chosenCause)
      && wanted.every((word) => textOf(row).includes(word)));
    if (sortBy < 0) return kept;
    const value = columns[sortBy].value;
    const sign = ascending ? 1 : -1;
    // What is not known comes last, whichever the order.
    return kept.map((row, at) => [value(row), at, row]).sort((a, b) => {
      const left = a[0] === null || a[0] === undefined;
      const right = b[0] === null || b[0] === undefined;
      if (left || right) return left - right || a[1] - b[1];
      if (typeof a[0] === 'string') return sign * a[0].localeCompare(b[0]) || a[1] - b[1];
      return sign * (a[0] - b[0]) || a[1] - b[1];
    }).map((entry) => entry[2]);
  }

  function unfolding(row, line) {
    const inner = () => options.inner && options.inner(row);
    const fold = button('fold', 'Details', () => {
      const open = fold.getAttribute('aria-expanded') === 'true';
      fold.setAttribute('aria-expanded', String(!open));
      fold.firstChild.data = open ? '\u25b8' : '\u25be';
      if (open) { line.nextSibling.remove(); return; }
      const cell = el('td', '', inner());
      cell.colSpan = columns.length;
      line.after(el('tr', 'inner', cell));
    }, '\u25b8');
    fold.setAttribute('aria-expanded', 'false');
    return fold;
  }

  function draw() {
    heads.forEach((head, number) => {
      if (number === sortBy) head.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    const kept = chosenRows();
    body.replaceChildren(...kept.slice(0, shown).map((row) => {
      const line = el('tr', 'row');
      columns.forEach((column, number) => {
        const cell = el('td', `${column.num ? 'num' : ''}${column.wide ? ' wide' : ''}`.trim());
        if (number > 0 || !unfolds) fill(cell, [column.cell(row)]);
        else {
          const more = !options.hasInner || options.hasInner(row);
          cell.append(el('div', 'lead', more ? unfolding(row, line) : el('span', 'fold'), el('div', '', column.cell(row))));
        }
        line.append(cell);
      });
      return line;
    }));
    const all = options.total === undefined ? rows.length : options.total;
    note.textContent = kept.length === rows.length && all === rows.length ? `${grouped(all)} row${all === 1 ? '' : 's'}`
      : `${grouped(kept.length)} of ${grouped(all)} rows`;
    more.hidden = kept.length <= shown;
    more.textContent = `Show ${grouped(Math.min(ROWS_AT_ONCE, kept.length - shown))} more`;
  }

  const search = attributes(document.createElement('input'), {
    type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${options.label || 'rows'}`, 'aria-controls': id,
  });
  search.addEventListener('input', () => { words = search.value; draw(); });
  if (options.cause) causeListeners.push(draw);
  const table = attributes(el('table', '', el('thead', '', el('tr', '', heads)), body), { id });
  table.style.setProperty('--columns', String(columns.filter((column) => !column.wide).length || 1));
  if (options.label) table.setAttribute('aria-label', options.label);
  draw();
  return el('div', 'sheet', el('div', 'controls', rows.length > FIRST_ROWS / 2 ? search : null, note),
    el('div', 'scroll', table), more);
}

// A figure of a row that rests on drawn blocks, as in lull's text. Only the sum of the
// bytes has an error that is known.
function marked(row, figure, error) {
  if (!row.estimated) return figure;
  return withTip(error ? `${TIPS.estimated} \u00b1 ${formatBytes(row.error_bytes)} (95 %).` : TIPS.estimated, `~${figure}`);
}
function markNote(rows) {
  return rows.some((row) => row.estimated) ? el('p', 'note', '~ estimated: of blocks under 64 KiB some are drawn.') : null;
}

// Columns that many tables have.
const column = {
  ms: (label, key, tip) => ({ label, tip, num: true, value: (r) => r[key], cell: (r) => formatMs(r[key]) }),
  count: (label, key, tip) => ({ label, tip, num: true, value: (r) => r[key], cell: (r) => formatCount(r[key]) }),
  bytes: (label, key, tip) => ({ label, tip, num: true, value: (r) => r[key], cell: (r) => marked(r, formatBytes(r[key]), key === 'bytes' || key === 'allocated_bytes') }),
  blocks: (label, key, tip) => ({ label, tip, num: true, value: (r) => r[key], cell: (r) => marked(r, formatCount(r[key])) }),
  percent: (label, key, tip) => ({ label, tip, num: true, value: (r) => r[key], cell: (r) => formatPercent(r[key]) }),
  share: (label, key, tip, colour) => ({
    label, tip, num: true, value: (r) => r[key],
    cell: (r) => el('span', '', formatPercent(r[key]), shareBar(r[key], colour && colour(r))),
  }),
  text: (label, key, tip) => ({ label, tip, value: (r) => (r[key] === null ? '' : String(r[key])), cell: (r) => (r[key] === null || r[key] === '' ? '\u2013' : String(r[key])) }),
  site: (label, pick, tip) => ({ label, tip, wide: true, value: (r) => siteText(pick(r)), text: (r) => `${(pick(r) || {}).file || ''} ${siteText(pick(r))}`, cell: (r) => siteNode(pick(r)) }),
  cause: () => ({ label: 'cause', value: (r) => causeWord(r.cause), cell: (r) => causeLabel(r.cause) }),
  rank: () => ({ label: 'rank', num: true, value: (r) => r.rank, cell: (r) => (r.rank === null ? '\u2013' : String(r.rank)) }),
};
