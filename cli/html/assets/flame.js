// Host time as a flame graph: one tree for each kind of thread, the root on top; what a
// function calls lies below it, the widest first.

const FLAME_ROW = 19;
const OWNERS = {
  user: ['#f3b05a', 'your code'], package: ['#a9c7e8', 'packages'], torch: ['#c4a7dd', 'PyTorch'],
  library: ['#c9cdd3', 'Python\u2019s own library'],
};

function ownerOf(frame) {
  const file = frame.file || '';
  if (/[/]torch[/]/.test(file) || /^(aten|autograd)/.test(frame.function || '')) return 'torch';
  if (/[/](site|dist)-packages[/]/.test(file)) return 'package';
  if (!file || file.startsWith('<') || /[/]lib(64)?[/]python3/.test(file)) return 'library';
  return 'user';
}

function makeTrees(flame) {
  const nodes = flame.frame.map((frame, i) => ({
    frame: frame === null ? null : DATA.frames[frame], parent: flame.parent[i],
    total: flame.total_us[i], self: flame.self_us[i], children: [], x: 0, depth: 0,
  }));
  nodes.forEach((node) => {
    if (node.parent < 0) return;
    const parent = nodes[node.parent];
    node.x = parent.x + parent.children.reduce((sum, child) => sum + child.total, 0);
    node.depth = parent.depth + 1;
    parent.children.push(node);
    node.up = parent;
  });
  return flame.roles.map((role) => ({ role: role.role, root: nodes[role.node] }));
}

function flameGraph() {
  const { flame } = DATA;
  if (!flame.frame.length) return null;
  const trees = makeTrees(flame);
  let tree = trees[0];
  let focus = tree.root;
  let words = '';
  let drawn = [];
  const canvas = attributes(el('canvas', ''), { role: 'img', 'aria-label': 'Flame graph of host time; the table below has its lines.' });
  const path = el('p', 'note');

  const nameOf = (node) => (node.frame ? turnless(shortFunction(node.frame.function || '(unknown)')) : ROLES[tree.role] || tree.role);
  const matches = (node) => words && node.frame && `${node.frame.function} ${node.frame.file}`.toLowerCase().includes(words);

  function depthOf(node) { return node.children.reduce((most, child) => Math.max(most, depthOf(child)), node.depth); }

  function draw() {
    const ancestors = [];
    for (let node = focus; node; node = node.up) ancestors.unshift(node);
    const base = ancestors.length - 1;
    const { context, width } = prepare(canvas, (depthOf(focus) + 1) * FLAME_ROW + 4);
    const scale = width / Math.max(1, focus.total);
    drawn = [];
    context.font = `11px ${style('--sans')}`;
    const box = (node, x, wide, faded) => {
      const y = node.depth * FLAME_ROW + 2;
      drawn.push({ node, x, wide, y });
      context.globalAlpha = faded ? 0.5 : words && !matches(node) ? 0.35 : 1;
      context.fillStyle = node.frame ? OWNERS[ownerOf(node.frame)][0] : style('--track');
      context.fillRect(x, y, Math.max(0.5, wide - 0.7), FLAME_ROW - 1.5);
      context.globalAlpha = 1;
      if (wide < 28) return;
      context.fillStyle = node.frame ? '#15191f' : style('--ink');
      let text = nameOf(node);
      const room = wide - 8;
      if (context.measureText(text).width > room) {
        text = `${text.slice(0, Math.max(0, Math.floor(room / 6.2) - 1))}\u2026`;
      }
      context.fillText(text, x + 4, y + 12.5);
    };
    for (const node of ancestors.slice(0, base)) box(node, 0, width, true);
    const below = (node) => {
      const wide = node.total * scale;
      if (wide < 0.6) return;
      box(node, (node.x - focus.x) * scale, wide, false);
      node.children.forEach(below);
    };
    below(focus);
    path.textContent = `${nameOf(focus)}: ${formatMs(focus.total / 1000)} of thread time; click a box to look at it alone, the boxes above it to go back.`;
  }
  const nodeAt = (event) => {
    const frame = canvas.getBoundingClientRect();
    const x = event.clientX - frame.left;
    const y = event.clientY - frame.top;
    const hit = drawn.filter((one) => x >= one.x && x < one.x + one.wide && y >= one.y && y < one.y + FLAME_ROW);
    return hit.length ? hit[hit.length - 1].node : null;
  };
  canvas.addEventListener('pointermove', (event) => {
    const node = nodeAt(event);
    if (!node) { hideTip(); return; }
    showTip(event, node.frame ? siteText(node.frame) : nameOf(node),
      `${formatMs(node.total / 1000)}, of it ${formatMs(node.self / 1000)} in the line itself`);
  });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('click', (event) => {
    const node = nodeAt(event);
    if (node) { focus = node; draw(); }
  });
  const tabs = trees.map((one) => {
    const node = button('', '', () => {
      tree = one;
      focus = one.root;
      tabs.forEach((tab) => tab.setAttribute('aria-pressed', String(tab === node)));
      draw();
    }, ROLES[one.role] || one.role);
    node.setAttribute('aria-pressed', String(one === tree));
    return node;
  });
  const search = attributes(el('input', ''), { type: 'search', placeholder: 'Highlight', 'aria-label': 'Highlight functions' });
  search.addEventListener('input', () => { words = search.value.toLowerCase(); draw(); });
  redraws.push(draw);
  const legend = el('ul', 'legend', Object.values(OWNERS).map(([colour, text]) => {
    const chip = el('span', 'chip', '');
    chip.style.background = colour;
    return el('li', 'cause', chip, text);
  }));
  return el('div', '', el('div', 'controls', tabs, search), legend, el('div', 'board', canvas), path,
    flame.least_us > 0 ? el('p', 'note', `Branches below ${formatMs(flame.least_us / 1000)} are left out: there are ${grouped(flame.nodes)} in all.`) : null);
}
