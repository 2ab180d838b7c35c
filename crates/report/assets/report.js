(() => {
'use strict';
const root = document.documentElement;
root.classList.add('js');
const $ = id => document.getElementById(id);
const make = (tag, text, parent) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
};
const read = id => { const e = $(id); return e ? JSON.parse(e.textContent) : null; };
const plan = read('plan');
/* A flow may be named as what every object has. */
const flowColour = (name, otherwise) => Object.hasOwn(plan.flows, name) ? plan.flows[name][0] : otherwise;
/* Its place in its group, whose flows share a colour. */
const member = name => Object.hasOwn(plan.flows, name) ? plan.flows[name][1] : 0;

/* Three digits, as the tables have them. */
const number = v => {
  if (v === null || v === undefined || !isFinite(v)) return '–';
  const size = Math.abs(v);
  if (size === 0) return '0';
  if (size < 1e-3 || size >= 1e7) return v.toExponential(2);
  if (Number.isInteger(v)) return size < 1e4 ? String(v) : v.toLocaleString('en').replace(/,/g, '\u202f');
  const digits = Math.min(5, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return String(+v.toFixed(digits));
};

/* What would not fit the margin. */
const compact = v => {
  const [by, letter] = [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']].find(([least]) => Math.abs(v) >= least) || [1, ''];
  return letter === '' ? number(v) : number(v / (letter === 'k' ? 1e3 : by)) + letter;
};

/* Theme */
const themes = ['auto', 'dark', 'light'];
let theme = 0;
const themed = [];
const css = name => getComputedStyle(root).getPropertyValue(name).trim();
const paint = () => {
  if (theme === 0) delete root.dataset.theme; else root.dataset.theme = themes[theme];
  if ($('theme')) $('theme').textContent = 'Theme: ' + themes[theme];
  themed.forEach(f => f());
};
if ($('theme')) $('theme').onclick = () => { theme = (theme + 1) % 3; paint(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => themed.forEach(f => f()));
matchMedia('print').addEventListener('change', () => themed.forEach(f => f()));

/* Shades of a colour for the flows of a group: nearer to the text, or to the page. */
const SHADES = [[0, ''], [0.4, '--fg'], [0.45, '--bg'], [0.65, '--fg'], [0.65, '--bg']];
const shaded = (name, which) => {
  const [part, other] = SHADES[which % SHADES.length], colour = css(name);
  if (part === 0) return colour;
  const rgb = text => text.length < 7 ? [...text.slice(1)].map(c => parseInt(c + c, 16)) : [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
  const towards = rgb(css(other));
  return '#' + rgb(colour).map((c, i) => Math.round(c + (towards[i] - c) * part).toString(16).padStart(2, '0')).join('');
};

/* Print: what is ticked */
document.querySelectorAll('#printing input').forEach(box => {
  box.onchange = () => { $(box.dataset.section).dataset.print = box.checked ? 'yes' : 'no'; };
});
if ($('print')) $('print').onclick = () => { $('printing').open = false; print(); };

/* Copy */
const copy = async text => {
  try { await navigator.clipboard.writeText(text); return true; } catch (_) { /* not allowed: by hand */ }
  const area = make('textarea', text, document.body);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
};
document.addEventListener('click', async event => {
  const button = event.target.closest('button.copy');
  if (!button) return;
  const done = await copy(button.parentElement.querySelector('code').textContent);
  button.textContent = done ? 'Copied' : 'Select it by hand';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
});

/* Points: what they are, and where they lead */
const tip = $('tip');
const titled = new WeakMap();
document.addEventListener('pointerover', event => {
  const g = event.target.closest && event.target.closest('svg.chart g');
  if (!g) { tip.hidden = true; return; }
  const title = g.querySelector(':scope > title');
  if (title) { titled.set(g, title.textContent); title.remove(); }
  const text = titled.get(g);
  if (!text) { tip.hidden = true; return; }
  tip.textContent = text;
  tip.hidden = false;
  const x = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8);
  tip.style.left = x + 'px';
  tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + 'px';
});
document.addEventListener('click', event => {
  const g = event.target.closest && event.target.closest('[data-run]');
  if (g) location.hash = 'r-' + g.dataset.run;
});
const unfold = () => {
  const target = location.hash.length > 1 && $(location.hash.slice(1));
  if (!target || !target.closest('details')) return;
  for (let e = target; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
  target.scrollIntoView();
};
addEventListener('hashchange', unfold);
unfold();

/* Deflated data */
const inflate = async id => {
  const text = atob($(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Response(stream).arrayBuffer();
};

/* The matrix */
const ramp = [[255, 250, 209], [187, 225, 190], [84, 178, 190], [38, 104, 163], [14, 38, 92]];
const shade = share => {
  const at = Math.min(1, Math.max(0, share)) * 4, i = Math.min(3, Math.floor(at)), part = at - i;
  const rgb = ramp[i].map((a, c) => Math.round(a + (ramp[i + 1][c] - a) * part));
  const [r, g, b] = rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return ['rgb(' + rgb.join(' ') + ')', 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff'];
};
/* Cells that read alike look alike. */
const asPrinted = v => Math.abs(v) >= 100 ? Math.round(v) : Number(v.toPrecision(3));
const matrix = async () => {
  const bySubject = $('matrix-subject'), byMetric = $('matrix-metric');
  if (!bySubject || !$('metrics')) return;
  const subjects = JSON.parse(new TextDecoder().decode(await inflate('metrics')));
  const table = document.querySelector('table.matrix.live');
  const legend = table.closest('section').querySelector('.ramp');
  const offer = () => {
    const wanted = byMetric.value, metrics = subjects[bySubject.value].metrics;
    byMetric.replaceChildren(...metrics.map(m => new Option(m[1], m[0])));
    const keep = metrics.find(m => m[0] === wanted) || metrics.find(m => /p95|goodput|jain/.test(m[0])) || metrics[0];
    if (keep) byMetric.value = keep[0];
  };
  const show = () => {
    const subject = subjects[bySubject.value];
    const metric = subject.metrics.find(m => m[0] === byMetric.value);
    if (!metric) return;
    const known = metric[3].filter(v => v !== null).map(asPrinted);
    const low = Math.min(...known), span = Math.max(Math.max(...known) - low, metric[4]);
    const shown = v => metric[1].endsWith('(%)') && v !== null && v !== 0 && Math.abs(v) < 0.01 ? '<0.01' : number(v);
    table.caption.textContent = metric[1] + ' of ' + subject.label;
    table.querySelectorAll('td[data-s]').forEach(cell => {
      const v = metric[3][cell.dataset.s], link = cell.querySelector('a');
      cell.classList.toggle('none', v === null);
      link.textContent = shown(v);
      const [back, front] = v === null ? ['', ''] : shade((asPrinted(v) - low) / span);
      cell.style.background = back;
      cell.style.color = front;
      const counted = metric[5]?.[cell.dataset.s];
      cell.querySelector('.counted')?.remove();
      if (counted) cell.append(Object.assign(document.createElement('small'), { className: 'counted', textContent: counted }));
    });
    legend.querySelector('.low').textContent = shown(low);
    legend.querySelector('.high').textContent = shown(Math.max(...known));
    legend.querySelector('i').style.backgroundSize = Math.min(5000, Math.max(100, 100 * span / Math.max(Math.max(...known) - low, span / 50))) + '% 100%';
    legend.querySelector('.better').textContent = metric[2];
  };
  const first = byMetric.value;
  offer();
  if (subjects[bySubject.value].metrics.some(m => m[0] === first)) byMetric.value = first;
  bySubject.onchange = () => { offer(); show(); };
  byMetric.onchange = show;
};
matrix();

/* Over time */
const PANELS = [
  ['rate (Mbit/s)', ['goodput_mbps', 1], ['capacity_mbps', 1], ['throughput_mbps', 0], ['delivery_mbps', 0], ['pacing_mbps', 0], ['bw_mbps', 0]],
  ['RTT (ms)', ['rtt_max_ms', 1], ['rtt_p95_ms', 0], ['rtt_p50_ms', 0], ['rtt_mean_ms', 0], ['srtt_ms', 0], ['min_rtt_ms', 0]],
  ['one-way delay (ms)', ['owd_max_ms', 0], ['owd_p95_ms', 0], ['owd_p50_ms', 0]],
  ['frame delay (ms)', ['frame_delay_max_ms', 1], ['frame_delay_p50_ms', 0]],
  ["a call's video later than its voice (ms)", ['av_offset_mean_ms', 0]],
  ['queue sojourn (ms)', ['sojourn_max_ms', 1], ['sojourn_mean_ms', 0]],
  ['queue (packets)', ['queue_peak_pkts', 1], ['queue_pkts', 0]],
  ['queue (bytes)', ['queue_bytes', 0]],
  ['cwnd and in flight (packets)', ['cwnd_pkts', 1], ['inflight_pkts', 0], ['ssthresh_pkts', 0], ['inflight_longterm_pkts', 0], ['extra_acked_pkts', 0]],
  ["a call's rates (Mbit/s)", ['target_mbps', 1], ['received_mbps', 1], ['sent_mbps', 0], ['delay_based_mbps', 0], ['loss_based_mbps', 0], ['acknowledged_mbps', 0]],
  ['frames in each step', ['frames_rendered', 1], ['frames_encoded', 0], ['frames_dropped', 0]],
  ['rounds', ['rounds', 0]],
  ['receive window (bytes)', ['rwnd_bytes', 0]],
  ['drops, marks and retransmissions in each step (packets)', ['drops', 1], ['marks', 1], ['retransmits', 1], ['dropped_pkts', 0]],
  ['part of a flow that was dropped', ['dropped_share', 0]],
];
const SHORT = {
  goodput_mbps: 'goodput', capacity_mbps: 'capacity', throughput_mbps: 'throughput', delivery_mbps: 'delivery rate',
  pacing_mbps: 'pacing rate', bw_mbps: 'bandwidth estimate', rtt_max_ms: 'largest', rtt_mean_ms: 'mean', srtt_ms: 'srtt',
  sojourn_max_ms: 'largest', sojourn_mean_ms: 'mean', queue_peak_pkts: 'peak', queue_pkts: 'at step', cwnd_pkts: 'cwnd',
  inflight_pkts: 'in flight', ssthresh_pkts: 'ssthresh', inflight_longterm_pkts: 'inflight_longterm', extra_acked_pkts: 'extra_acked',
  rtt_p95_ms: '95th percentile', rtt_p50_ms: 'median', min_rtt_ms: 'least known', owd_max_ms: 'largest', owd_p95_ms: '95th percentile',
  owd_p50_ms: 'median', frame_delay_max_ms: 'largest', frame_delay_p50_ms: 'median', dropped_pkts: 'dropped', dropped_share: 'share',
  target_mbps: 'target', sent_mbps: 'sent', received_mbps: 'received', delay_based_mbps: 'by delay', loss_based_mbps: 'by loss',
  acknowledged_mbps: 'acknowledged', frames_encoded: 'encoded', frames_rendered: 'shown', frames_dropped: 'given up',
  av_offset_mean_ms: 'mean',
};
const DASH = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const WIDE = 8;

class Column {
  constructor(head, lo, hi) { this.head = head; this.codes = [lo, hi]; this.levels = []; }
  /* Level 0 has every point, each further one the least and largest of four. */
  level(k) {
    if (this.levels[k]) return this.levels[k];
    let lo, hi;
    if (k === 0) {
      const value = codes => Float32Array.from(codes, c => c === 65535 ? NaN : this.head.min + c * this.head.step);
      lo = value(this.codes[0]);
      hi = this.codes[1] ? value(this.codes[1]) : lo;
    } else {
      const below = this.level(k - 1), n = Math.ceil(below.lo.length / 4);
      lo = new Float32Array(n); hi = new Float32Array(n);
      for (let i = 0; i < n; i++) {
        let a = Infinity, b = -Infinity;
        for (let j = 4 * i; j < 4 * i + 4 && j < below.lo.length; j++) {
          if (below.lo[j] < a) a = below.lo[j];
          if (below.hi[j] > b) b = below.hi[j];
        }
        lo[i] = a > b ? NaN : a; hi[i] = a > b ? NaN : b;
      }
    }
    return (this.levels[k] = { lo, hi });
  }
  /* Values that stand alone, as those of a slow ping: their gaps are drawn over. */
  get sparse() {
    if (this._sparse === undefined) {
      const c = this.codes[0], m = 65535;
      let alone = 0, known = 0;
      for (let i = 0; i < c.length; i++) if (c[i] !== m) {
        known++;
        if ((i === 0 || c[i - 1] === m) && (i + 1 === c.length || c[i + 1] === m)) alone++;
      }
      this._sparse = known > 0 && alone > known / 5;
    }
    return this._sparse;
  }
}

const cache = new Map();
const load = async run => {
  if (cache.has(run)) return cache.get(run);
  const buffer = await inflate('series-' + run);
  const bytes = new Uint8Array(buffer), length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const n = head.n, t = new Float64Array(n);
  if (Array.isArray(head.t)) t.set(head.t);
  else { for (let i = 0; i < n; i++) t[i] = head.t.first + i * head.t.step; t[n - 1] = head.t.last; }
  let at = 4 + length;
  const codes = () => {
    const out = new Uint16Array(n);
    let before = 0;
    for (let i = 0; i < n; i++) out[i] = before = (before + bytes[at + i] + (bytes[at + n + i] << 8)) & 65535;
    at += 2 * n;
    return out;
  };
  for (const series of head.series)
    series.columns = Object.fromEntries(series.columns.map(c => [c.name, new Column(c, codes(), head.steps > 1 ? codes() : null)]));
  const data = { run, steps: head.steps, n, t, series: head.series, end: n ? t[n - 1] : 1 };
  cache.set(run, data);
  return data;
};

const phaseShade = name => {
  name = name.toLowerCase();
  const any = (...words) => words.some(w => name.includes(w));
  return any('loss', 'recovery', 'timeout') ? 1 : any('startup', 'slow') ? 0.75 : any('rtt', 'drain') ? 0.55
    : any('up', 'refill', 'probe') && !any('down', 'cruise') ? 0.38 : 0.18;
};
const impulses = (u, s, i0, i1) => {
  const path = new Path2D(), xs = u.data[0], ys = u.data[s];
  const base = u.valToPos(0, 'y', true);
  for (let i = i0; i <= i1; i++) if (ys[i] > 0) {
    const x = Math.round(u.valToPos(xs[i], 'x', true)) + 0.5;
    path.moveTo(x, base);
    path.lineTo(x, u.valToPos(ys[i], 'y', true));
  }
  return { stroke: path };
};

const explorer = async () => {
  const box = $('explorer');
  const has = run => $('series-' + run) !== null;
  const runsOf = new Map();
  plan.runs.forEach(([scenario, seed], run) => {
    if (!has(run)) return;
    if (!runsOf.has(scenario)) runsOf.set(scenario, []);
    runsOf.get(scenario).push([run, seed]);
  });
  const scenarioPick = $('pick-scenario'), seedPick = $('pick-seed'), otherPick = $('pick-other');
  for (const scenario of runsOf.keys()) {
    scenarioPick.append(new Option(plan.scenarios[scenario], scenario));
    for (const [run, seed] of runsOf.get(scenario)) otherPick.append(new Option(plan.scenarios[scenario] + ', seed ' + seed, run));
  }
  const hidden = new Map();
  let zooming = false, asked = null, range = null, shown = [], panels = [], drawing = 0;

  const seeds = () => seedPick.replaceChildren(...runsOf.get(+scenarioPick.value).map(([run, seed]) => new Option(seed, run)));
  const sync = uPlot.sync('time');

  /* What of a column falls between a and b, in at most two values for each pixel. */
  const window_ = (data, columns, a, b, width) => {
    const first = Math.max(0, below(data.t, a) - 1), last = Math.min(data.n, below(data.t, b) + 2);
    let k = 0;
    while ((last - first) / 4 ** k > 1.5 * width) k++;
    const step = 4 ** k, i0 = Math.floor(first / step), i1 = Math.ceil(last / step);
    const pairs = k > 0 || data.steps > 1;
    const xs = [], out = columns.map(() => []);
    const half = data.n > 1 ? (data.t[Math.min(data.n - 1, step)] - data.t[0]) / 2 : 0;
    for (let i = i0; i < i1; i++) {
      const x = data.t[Math.min(i * step, data.n - 1)];
      xs.push(x);
      if (pairs) xs.push(x + half);
    }
    columns.forEach((column, c) => {
      const { lo, hi } = column.level(k), y = out[c];
      for (let i = i0; i < i1; i++) {
        y.push(lo[i] === lo[i] ? lo[i] : null);
        if (pairs) y.push(hi[i] === hi[i] ? hi[i] : null);
      }
    });
    return [k, [xs, ...out]];
  };
  const below = (t, x) => {
    let a = 0, b = t.length;
    while (a < b) { const m = (a + b) >> 1; if (t[m] < x) a = m + 1; else b = m; }
    return a;
  };

  const draw = () => {
    const all = Math.max(...shown.map(d => d.end));
    const [a, b] = range || [0, all];
    for (const panel of panels) {
      let high = 0, low = 0;
      for (const plot of panel.plots) {
        [plot.level, plot.next] = window_(plot.data, plot.columns, a, b, plot.u.width);
        plot.next.slice(1).forEach((ys, i) => {
          if (!plot.on[i] || plot.behind[i]) return;
          for (let j = 0; j < ys.length; j++) {
            if (ys[j] > high) high = ys[j];
            if (ys[j] < low) low = ys[j];
          }
        });
      }
      /* A capacity far above the rates must not flatten them: the axis follows it so far. */
      const rates = high;
      for (const plot of panel.plots)
        plot.next.slice(1).forEach((ys, i) => {
          if (!plot.on[i] || !plot.behind[i]) return;
          for (let j = 0; j < ys.length; j++) if (ys[j] > high && (rates === 0 || ys[j] <= 2 * rates)) high = ys[j];
        });
      panel.range = [low, high > low ? high * 1.06 : low + 1];
      for (const { u, next } of panel.plots)
        u.batch(() => { u.setData(next, false); u.setScale('x', { min: a, max: b }); });
    }
    $('plot-caption').dataset.range = a.toFixed(3) + ' ' + b.toFixed(3);
  };
  const zoom = (a, b) => {
    const all = Math.max(...shown.map(d => d.end)), least = all * 1e-5;
    if (b - a < least) { const m = (a + b) / 2; a = m - least / 2; b = m + least / 2; }
    if (b - a >= all) range = null;
    else {
      if (a < 0) { b -= a; a = 0; }
      if (b > all) { a -= b - all; b = all; }
      range = [Math.max(0, a), b];
    }
    draw();
  };
  const scaled = (factor, shift) => {
    const all = Math.max(...shown.map(d => d.end)), [a, b] = range || [0, all];
    const middle = (a + b) / 2 + shift * (b - a), half = (b - a) * factor / 2;
    zoom(middle - half, middle + half);
  };

  const build = () => {
    panels.forEach(p => p.plots.forEach(plot => plot.u.destroy()));
    panels = [];
    const grid = $('plots');
    grid.replaceChildren();
    grid.classList.toggle('two', shown.length > 1);
    for (const [title, ...wanted] of PANELS) {
      const panel = { plots: [], range: [0, 1] };
      /* What is not usual is drawn when a view asks for it. */
      const any = shown.some(d => d.series.some(s => wanted.some(([name]) => s.columns[name])))
        && wanted.some(([name, on]) => on || asked && asked.includes(name));
      if (!any) continue;
      for (const data of shown) panel.plots.push(plotOf(panel, title, wanted, data, grid));
      panels.push(panel);
    }
    draw();
  };

  const plotOf = (panel, title, wanted, data, grid) => {
    const box = make('div', undefined, grid);
    box.className = 'plot';
    const [scenario, seed] = plan.runs[data.run];
    make('p', title + (shown.length > 1 ? ' — ' + plan.scenarios[scenario] + ', seed ' + seed : ''), box).className = 'name';
    const keys = make('div', undefined, box);
    keys.className = 'keys';
    const impulse = wanted[0][0] === 'drops';
    const traces = [];
    let queues = 0, flows = 0;
    for (const series of data.series) {
      const flow = series.kind === 'flow';
      const colour = flow ? (flowColour(series.name, flows)) : 4 + queues;
      const position = flow ? flows++ : queues++;
      wanted.forEach(([name, on], which) => {
        const column = series.columns[name];
        if (!column) return;
        const id = title + '/' + series.name + '/' + name;
        const visible = hidden.has(id) ? !hidden.get(id) : (asked ? asked.includes(name) : !!on) && position < (name === 'capacity_mbps' ? 1 : WIDE);
        let extra = colour;
        if (impulse) extra = name === 'marks' ? 3 : name === 'drops' ? 6 : colour;
        traces.push({ id, column, series, name, colour: extra % 8, member: flow ? member(series.name) : 0, dash: impulse ? 0 : which % 4, faint: name === 'capacity_mbps', on: visible });
      });
    }
    const ribbons = wanted[0][0] === 'cwnd_pkts' ? data.series.filter(s => s.phases.length > 1).slice(0, 6) : [];
    const font = '11px system-ui, sans-serif';
    const axis = { stroke: () => css('--muted'), grid: { stroke: () => css('--line'), width: 1 }, ticks: { stroke: () => css('--line'), width: 1 }, font };
    const plot = { data, columns: traces.map(t => t.column), on: traces.map(t => t.on), behind: traces.map(t => t.faint) };
    const host = make('div', undefined, box);
    const outputs = [];
    traces.forEach((trace, i) => {
      const button = make('button', undefined, keys);
      button.type = 'button';
      button.className = 'k' + trace.colour;
      button.setAttribute('aria-pressed', trace.on);
      const sample = make('i', undefined, button);
      sample.className = 'd' + trace.dash;
      if (trace.member) { const tint = () => { sample.style.borderTopColor = shaded('--k' + trace.colour, trace.member); }; tint(); themed.push(tint); }
      const what = SHORT[trace.name] || trace.name.replace(/_/g, ' ');
      button.append(trace.series.name + ' ' + what);
      outputs.push(make('output', '', button));
      button.onclick = () => {
        plot.on[i] = !plot.on[i];
        hidden.set(trace.id, !plot.on[i]);
        button.setAttribute('aria-pressed', plot.on[i]);
        plot.u.setSeries(i + 1, { show: plot.on[i] });
        draw();
      };
    });
    const phaseOut = ribbons.map(series => {
      const e = make('button', undefined, keys);
      e.disabled = true;
      e.className = 'k' + (flowColour(series.name, 0) % 8);
      e.append(series.name + ' phase');
      return make('output', '', e);
    });
    const top = 6 + ribbons.length * 12;
    plot.u = new uPlot({
      width: Math.max(200, host.clientWidth), height: (shown.length > 1 ? 150 : 165) + ribbons.length * 12, padding: [top, 22, 0, 0], pxAlign: 0,
      legend: { show: false },
      cursor: {
        sync: { key: sync.key, scales: ['x', null] }, y: false, points: { size: 6 },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { range = null; draw(); } },
      },
      scales: { x: { time: false }, y: { range: () => panel.range } },
      axes: [{ ...axis, size: 30, values: (_, v) => v.map(x => number(x) + ' s') }, { ...axis, size: 54, values: (_, v) => v.map(compact) }],
      series: [{}, ...traces.map(trace => ({
        show: trace.on, spanGaps: trace.column.sparse, points: { show: false },
        stroke: () => shaded('--k' + trace.colour, trace.member) + (trace.faint ? '80' : ''),
        width: impulse ? 1.5 : trace.dash ? 1 : 1.4, dash: DASH[trace.dash], paths: impulse ? impulses : undefined,
      }))],
      hooks: {
        setSelect: [u => {
          /* The panels that share the cursor are told too, one after the other. */
          const { left, width } = u.select;
          if (width > 3 && !zooming) {
            zooming = true;
            setTimeout(() => { zooming = false; });
            zoom(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
          }
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [u => {
          const i = u.cursor.idx;
          const x = i === null || i === undefined ? null : u.data[0][i];
          traces.forEach((trace, k) => {
            let text = '';
            if (x !== null && plot.on[k]) {
              /* Of what is drawn there, so that a peak that is seen can be read. */
              const { lo, hi } = trace.column.level(plot.level);
              const at = Math.floor(Math.min(data.n - 1, below(data.t, x)) / 4 ** plot.level);
              text = lo[at] !== hi[at] && hi[at] === hi[at] ? number(lo[at]) + '…' + number(hi[at]) : number(lo[at]);
            }
            outputs[k].textContent = text;
          });
          ribbons.forEach((series, k) => { phaseOut[k].textContent = x === null ? '' : phaseAt(data, series, x); });
          $('plot-caption').dataset.cursor = x === null ? '' : x.toFixed(4);
        }],
        draw: [u => ribbons.forEach((series, k) => ribbon(u, data, series, k))],
      },
    }, [[0], ...traces.map(() => [null])], host);
    sync.sub(plot.u);
    plot.u.over.setAttribute('aria-hidden', 'true');
    return plot;
  };
  const phaseAt = (data, series, x) => {
    const step = below(data.t, x) * data.steps;
    let name = '';
    for (const [at, phase] of series.phases) { if (at > step) break; name = phase; }
    return name;
  };
  const ribbon = (u, data, series, k) => {
    const { ctx, bbox } = u, px = devicePixelRatio || 1;
    const colour = css('--k' + (flowColour(series.name, 0) % 8));
    const y = bbox.top - (k + 1) * 12 * px, h = 9 * px;
    const time = step => data.t[Math.min(data.n - 1, Math.floor(step / data.steps))];
    ctx.save();
    ctx.font = 8.5 * px + 'px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    series.phases.forEach(([at, name], i) => {
      if (!name) return;
      const next = series.phases[i + 1];
      const from = Math.max(bbox.left, u.valToPos(time(at), 'x', true));
      const to = Math.min(bbox.left + bbox.width, next ? u.valToPos(time(next[0]), 'x', true) : bbox.left + bbox.width);
      if (to <= from) return;
      ctx.globalAlpha = phaseShade(name);
      ctx.fillStyle = colour;
      ctx.fillRect(from, y, Math.max(to - from, 0.5), h);
      ctx.globalAlpha = 1;
      if (to - from > ctx.measureText(name).width + 6 * px && phaseShade(name) < 0.5) {
        ctx.fillStyle = css('--fg');
        ctx.fillText(name, from + 3 * px, y + h / 2);
      }
    });
    ctx.restore();
  };

  const show = async () => {
    const turn = ++drawing;
    const runs = [+seedPick.value, ...(otherPick.value === '' ? [] : [+otherPick.value])];
    const data = await Promise.all(runs.map(load));
    if (turn !== drawing) return;
    shown = data;
    const coarse = shown.find(d => d.steps > 1);
    $('plot-caption').textContent = 'Drag across a panel to zoom, double-click for the whole run. A name in a key shows or hides its curve.'
      + (coarse ? ' To keep this page small, ' + coarse.steps + ' steps are joined to their least and largest value.' : '');
    build();
    box.dataset.ready = runs.join(' ');
  };
  const pick = (run, columns) => {
    asked = columns ? columns.split(' ') : null;
    if (asked) hidden.clear();
    scenarioPick.value = plan.runs[run][0];
    seeds();
    seedPick.value = run;
    return show();
  };
  scenarioPick.onchange = () => {
    const before = seedPick.selectedIndex;
    seeds();
    seedPick.selectedIndex = Math.min(before, seedPick.options.length - 1);
    show();
  };
  seedPick.onchange = otherPick.onchange = show;
  $('zoom-in').onclick = () => scaled(0.5, 0);
  $('zoom-out').onclick = () => scaled(2, 0);
  $('zoom-left').onclick = () => scaled(1, -0.4);
  $('zoom-right').onclick = () => scaled(1, 0.4);
  $('zoom-all').onclick = () => { range = null; draw(); };
  themed.push(() => panels.forEach(p => p.plots.forEach(({ u }) => u.redraw(false, true))));
  let resizing = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(resizing);
    resizing = requestAnimationFrame(() => {
      panels.forEach(p => p.plots.forEach(({ u }) => {
        const width = u.root.parentElement.clientWidth;
        if (width > 0 && width !== u.width) u.setSize({ width, height: u.height });
      }));
      if (panels.length) draw();
    });
  }).observe($('plots'));
  scenarioPick.selectedIndex = 0;
  seeds();
  await show();
  return pick;
};
if ($('explorer')) {
  let started;
  const start = () => started || (started = explorer());
  /* Drawn when it comes near, so that a page opens at once. */
  const seen = new IntersectionObserver(entries => {
    if (entries.some(e => e.isIntersecting)) { seen.disconnect(); start(); }
  }, { rootMargin: '600px' });
  seen.observe($('explorer'));
  document.addEventListener('click', async event => {
    const button = event.target.closest('[data-open]');
    if (!button) return;
    const pick = await start();
    await pick(+button.dataset.open, button.dataset.columns);
    $('explorer').scrollIntoView();
  });
}
})();
