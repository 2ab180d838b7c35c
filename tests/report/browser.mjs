// Opens pages of made-up results, and of the shipped studies, in Chromium and does what a reader does.
// node browser.mjs FOLDER_OF_PAGES FOLDER_OF_STUDIES FOLDER_FOR_SCREENSHOTS
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const require = createRequire(import.meta.url);
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [pages, studies, shots] = process.argv.slice(2, 5).map(folder => path.resolve(folder));
fs.mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox'] });

let failed = 0;
const test = async (sentence, body) => {
  try { await body(); console.log('ok    ' + sentence); }
  catch (error) { failed++; console.log('FAIL  ' + sentence + '\n' + error.stack); }
};
const open = async (name, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', error => page.problems.push(error.message));
  page.on('console', message => { if (message.type() === 'error') page.problems.push(message.text()); });
  page.on('request', request => { if (!/^(file|data|blob):/.test(request.url())) page.problems.push('asked for ' + request.url()); });
  await page.goto('file://' + path.resolve(pages, name));
  return page;
};

/* Others have more to do here than there are processors: what a clock says is theirs too. */
const busy = () => os.loadavg()[0] > os.cpus().length + 1;
const explorer = async page => {
  await page.locator('#explorer').scrollIntoViewIfNeeded();
  await page.waitForSelector('#explorer[data-ready]');
};
const shot = (page, name, options = {}) => page.screenshot({ path: path.join(shots, name + '.png'), ...options });

await test('a report opens and can be used after less than 1.5 s of a processor', async () => {
  // The best of five, and of the processor: what a clock says depends on who else is at work on the machine.
  const times = [], worked = [];
  for (let i = 0; i < 5; i++) {
    const start = Date.now();
    const page = await open('report.html');
    await explorer(page);
    times.push(Date.now() - start);
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable');
    const { metrics } = await session.send('Performance.getMetrics');
    worked.push(Math.round(1000 * metrics.find(metric => metric.name === 'ProcessTime').value));
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
  console.log(`      ${times.join(', ')} ms until the panels over time stood, ${worked.join(', ')} ms of a processor`);
  assert.ok(Math.min(...worked) < 1500);
});

await test('the cursor of one panel moves those of all others', async () => {
  const page = await open('report.html');
  await explorer(page);
  const panel = page.locator('.plot .u-over').first();
  await panel.scrollIntoViewIfNeeded();
  const box = await panel.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
  await page.waitForTimeout(200);
  const lines = await page.$$eval('.plot .u-cursor-x', all => all.map(e => new DOMMatrix(getComputedStyle(e).transform).e));
  assert.ok(lines.length >= 5);
  for (const x of lines) assert.ok(Math.abs(x - lines[0]) < 2 && x > 50, String(lines));
  const values = await page.$$eval('.keys button[aria-pressed=true] output', all => all.map(e => e.textContent));
  assert.ok(values.filter(v => v !== '').length >= 6, String(values));
  await shot(page, 'cursor');
  await page.context().close();
});

await test('dragging zooms every panel, double-click goes back', async () => {
  const page = await open('report.html');
  await explorer(page);
  const range = async () => (await page.locator('#plot-caption').getAttribute('data-range')).split(' ').map(Number);
  const [, end] = await range();
  const panel = page.locator('.plot .u-over').first();
  await panel.scrollIntoViewIfNeeded();
  const box = await panel.boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 5 });
  await page.mouse.up();
  const [a, b] = await range();
  assert.ok(Math.abs(a - end * 0.25) < end * 0.02 && Math.abs(b - end * 0.5) < end * 0.02, `${a} ${b} of ${end}`);
  await shot(page, 'zoom');
  await panel.dblclick();
  assert.deepEqual(await range(), [0, end]);
  await page.locator('#zoom-in').focus();
  await page.keyboard.press('Enter');
  const [c, d] = await range();
  assert.ok(Math.abs((d - c) - end / 2) < 0.01, 'the keyboard zooms too');
  await page.context().close();
});

await test('a name in the key shows and hides its curve, and says so', async () => {
  const page = await open('report.html');
  await explorer(page);
  const panel = page.locator('.plot').nth(4);
  const before = await panel.locator('canvas').evaluate(c => c.toDataURL());
  const key = panel.locator('.keys button[aria-pressed=true]').first();
  const name = await key.textContent();
  await key.click();
  await page.waitForTimeout(150);
  assert.notEqual(await panel.locator('canvas').evaluate(c => c.toDataURL()), before);
  const again = panel.locator('.keys button', { hasText: name.trim() }).first();
  assert.equal(await again.getAttribute('aria-pressed'), 'false');
  await again.click();
  await page.waitForTimeout(150);
  assert.equal(await panel.locator('canvas').evaluate(c => c.toDataURL()), before);
  await page.context().close();
});

await test('two runs stand side by side on the same scale', async () => {
  const page = await open('report.html');
  await explorer(page);
  await page.locator('#pick-other').selectOption({ index: 31 });
  await page.waitForFunction(() => document.querySelector('#explorer').dataset.ready.split(' ').length === 2);
  const count = await page.locator('.plot').count();
  assert.ok(count >= 10, String(count));
  await shot(page, 'beside', { fullPage: false });
  await page.context().close();
});

await test('one click copies the command that repeats a run', async () => {
  const page = await open('report.html', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.goto('file://' + path.join(pages, 'report.html') + '#r-7');
  await page.waitForTimeout(100);
  const run = page.locator('#r-7');
  assert.ok(await run.evaluate(e => e.open), 'a link to a run opens it');
  await run.locator('button.copy').click();
  await page.waitForTimeout(150);
  assert.equal(await run.locator('button.copy').textContent(), 'Copied');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, await run.locator('.command code').textContent());
  assert.match(copied, /^sojourn run .*--seed 3$/);
  await page.context().close();
});

await test('the matrix is coloured by whatever metric is chosen, and leads to runs', async () => {
  const page = await open('report.html');
  await page.waitForTimeout(300);
  const cell = page.locator('table.matrix.live td[data-s="4"]');
  const before = await cell.textContent();
  await page.locator('#matrix-subject').selectOption({ label: 'flow cubic' });
  await page.locator('#matrix-metric').selectOption('goodput_mbps');
  assert.notEqual(await cell.textContent(), before);
  assert.match(await page.locator('table.matrix.live caption').textContent(), /goodput \(Mbit\/s\) of cubic/);
  await cell.locator('a').click();
  assert.match(page.url(), /#s-4$/);
  await page.context().close();
});

await test('a point tells what it is and leads to its run', async () => {
  const page = await open('report.html');
  const point = page.locator('#throughput-delay g.pt').first();
  await point.scrollIntoViewIfNeeded();
  await point.hover({ force: true });
  assert.match(await page.locator('#tip').textContent(), /seed \d+: .* at /);
  await point.click({ force: true });
  assert.match(page.url(), /#r-\d+$/);
  await page.context().close();
});

await test('a million points zoom without a wait that can be seen, and keep their peak', async () => {
  const page = await open('million.html');
  await explorer(page);
  const times = await page.evaluate(async () => {
    /* Until the frame that the click leads to is drawn. */
    const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    const out = [];
    for (let i = 0; i < 16; i++) {
      const start = performance.now();
      document.getElementById(i % 4 === 3 ? 'zoom-all' : 'zoom-in').click();
      const script = performance.now() - start;
      await drawn();
      out.push([script, performance.now() - start]);
    }
    return [0, 1].map(which => out.map(pair => pair[which]).sort((a, b) => a - b));
  });
  const [script, frame] = times.map(all => all[8]);
  console.log(`      a zoom takes ${script.toFixed(0)} ms, and ${frame.toFixed(0)} with its frame, in the median`);
  assert.ok((busy() ? script : frame) < 100, JSON.stringify(times));
  const panel = page.locator('.plot .u-over').first();
  const read = async at => {
    const box = await panel.boundingBox();
    for (let dx = -3; dx <= 3; dx++) {
      await page.mouse.move(box.x + box.width * at + dx, box.y + 40);
      await page.waitForTimeout(30);
      const told = await page.locator('.keys output').first().textContent();
      if (told.includes('1000')) return told;
    }
    return null;
  };
  await page.locator('#zoom-all').click();
  await panel.scrollIntoViewIfNeeded();
  assert.notEqual(await read(0.654321), null, 'one point in a million is seen from afar');
  assert.equal(await read(0.3), null);
  await shot(page, 'million');
  await page.context().close();
});

for (const scheme of ['light', 'dark']) {
  await test(`contrast and keyboard pass axe in ${scheme}`, async () => {
    const page = await open('report.html', { colorScheme: scheme });
    await explorer(page);
    await page.evaluate(() => document.querySelectorAll('details').forEach((e, at) => { e.open = at < 12; }));
    await page.addScriptTag({ content: axe }).catch(() => page.evaluate(axe));
    const result = await page.evaluate(() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'] }));
    const told = result.violations.map(v => `${v.id} (${v.impact}): ${v.nodes.length}, such as ${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].failureSummary}`);
    assert.deepEqual(told, []);
    await page.evaluate(() => scrollTo(0, 0));
    await shot(page, 'top-' + scheme);
    await page.locator('#figures').screenshot({ path: path.join(shots, `figures-${scheme}.png`) });
    await page.locator('#time').screenshot({ path: path.join(shots, `time-${scheme}.png`) });
    assert.equal(await page.locator('#s-3').isVisible(), false, 'twelve scenarios are folded');
    await page.locator('#matrix a[href="#s-3"]').first().click();
    await page.locator('#s-3').screenshot({ path: path.join(shots, `scenario-${scheme}.png`) });
    await page.context().close();
  });
}

await test('the theme can be chosen against the system', async () => {
  const page = await open('report.html', { colorScheme: 'light' });
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await colour(), 'rgb(255, 255, 255)');
  await page.locator('#theme').click();
  assert.equal(await colour(), 'rgb(20, 23, 26)');
  await page.context().close();
});

await test('the keyboard reaches the first controls in order', async () => {
  const page = await open('report.html');
  const seen = [];
  for (let i = 0; i < 10; i++) {
    await page.keyboard.press('Tab');
    seen.push(await page.evaluate(() => document.activeElement.textContent.trim()));
  }
  assert.equal(seen[0], 'To the answer');
  assert.ok(seen.includes('Matrix') && seen.some(text => text.startsWith('Theme')), String(seen));
  await page.context().close();
});

await test('without script the answer, tables and figures stand', async () => {
  const page = await open('report.html', { javaScriptEnabled: false });
  assert.ok(await page.locator('.claim .badge').first().isVisible());
  assert.ok(await page.locator('table.matrix').first().isVisible());
  assert.ok(await page.locator('#throughput-delay svg').first().isVisible());
  await page.locator('details.scenario > summary').first().click();
  assert.ok(await page.locator('#s-0 svg.time').isVisible());
  await page.locator('#matrix a[href="#s-3"]').first().click();
  assert.ok(await page.locator('#s-3 svg.time').isVisible(), 'a cell leads into a scenario that was folded');
  assert.ok(await page.locator('noscript').count() > 0);
  assert.equal(await page.locator('#explorer').isVisible(), false);
  assert.equal(await page.locator('button.copy').first().isVisible(), false);
  await shot(page, 'noscript', { clip: { x: 0, y: 0, width: 1280, height: 3000 }, fullPage: true });
  await page.context().close();
});

await test('it prints on white, with figures', async () => {
  const page = await open('report.html', { colorScheme: 'dark' });
  await explorer(page);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
  assert.equal(await page.locator('nav').isVisible(), false);
  assert.ok(await page.locator('#throughput-delay svg').first().isVisible());
  const pdf = await page.pdf({ path: path.join(shots, 'report.pdf'), format: 'A4', printBackground: true });
  assert.ok(pdf.length > 50_000);
  await shot(page, 'print');
  await page.context().close();
});

await test('what is printed can be chosen, and without a choice it is short', async () => {
  const page = await open('report.html');
  const printed = async () => {
    await page.emulateMedia({ media: 'print' });
    const seen = {};
    for (const part of ['answer', 'claims', 'runs', 'time']) seen[part] = await page.locator('#' + part).isVisible();
    await page.emulateMedia({ media: 'screen' });
    return seen;
  };
  assert.deepEqual(await printed(), { answer: true, claims: true, runs: false, time: false });
  await page.locator('#printing summary').click();
  await page.locator('#printing input[data-section=runs]').check();
  await page.locator('#printing input[data-section=claims]').uncheck();
  assert.deepEqual(await printed(), { answer: true, claims: false, runs: true, time: false });
  await page.context().close();
});

await test('an interrupted study opens and says what is missing', async () => {
  const page = await open('interrupted.html');
  assert.match(await page.locator('.notice').textContent(), /23 of 60 runs have no result yet/);
  await explorer(page);
  assert.deepEqual(page.problems, []);
  await shot(page, 'interrupted');
  await page.context().close();
});

await test('markup in a study, its results or an error does nothing', async () => {
  const page = await open('hostile.html');
  let dialogs = 0;
  page.on('dialog', dialog => { dialogs++; dialog.dismiss(); });
  await explorer(page);
  await page.locator('#pick-scenario').selectOption({ index: 3 });
  await page.locator('#matrix-subject').selectOption({ index: 1 });
  await page.locator('figure g.pt').first().hover({ force: true });
  await page.evaluate(() => document.querySelectorAll('details').forEach(e => { e.open = true; }));
  await page.waitForTimeout(200);
  assert.equal(await page.locator('img').count(), 0);
  assert.equal(await page.locator('[onerror]').count(), 0);
  assert.equal(dialogs, 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

await test('a comparison lists the worst first', async () => {
  const page = await open('compare.html');
  assert.match(await page.locator('table.deltas tbody tr').first().textContent(), /worse/);
  assert.deepEqual(page.problems, []);
  await shot(page, 'compare');
  await page.context().close();
});

const shipped = fs.existsSync(studies) ? fs.readdirSync(studies) : [];
for (const name of ['report.html', ...shipped.map(study => path.join(studies, study, 'report.html'))]) {
  const title = path.isAbsolute(name) ? path.basename(path.dirname(name)) : 'specimen';
  await test(`it fits a phone: ${title}`, async () => {
    const page = await open(name, { viewport: { width: 390, height: 844 } });
    await explorer(page);
    await page.evaluate(() => document.querySelectorAll('details').forEach((e, at) => { e.open = at < 6; }));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 1, wide + ' pixels too wide');
    await page.evaluate(() => scrollTo(0, 0));
    await shot(page, title + '-phone', { fullPage: true, clip: { x: 0, y: 0, width: 390, height: 2600 } });
    await page.context().close();
  });
}
await test('a shipped study has its answer on the first screen, and a figure for each view', async () => {
  assert.ok(shipped.length > 0, 'no study was run');
  for (const study of shipped) {
    for (const scheme of ['light', 'dark']) {
      const page = await open(path.join(studies, study, 'report.html'), { colorScheme: scheme });
      const verdict = page.locator('p.verdict');
      assert.ok((await verdict.boundingBox()).y < 900, 'the verdict is seen without scrolling');
      assert.match(await verdict.textContent(), /held|can’t be tested/i);
      assert.ok((await page.locator('#answer .findings li').first().boundingBox()).y < 900, 'so is a sentence');
      assert.ok(await page.locator('#answer figure').count() > 0, 'and a figure goes with it');
      await shot(page, `${study}-top-${scheme}`);
      await explorer(page);
      assert.deepEqual(page.problems, []);
      const empty = await page.$$eval('figure', all => all.filter(e => !e.querySelector('svg, table')).map(e => e.textContent));
      assert.deepEqual(empty, []);
      // A study whose only view is the figure of the answer has standard figures alone.
      for (const parts of ['#answer', '#matrix', '#figures, #standard', '#time']) {
        const name = `${study}-${parts.split(', ')[0].slice(1)}-${scheme}.png`;
        await page.locator(parts).first().screenshot({ path: path.join(shots, name) });
      }
      await page.context().close();
    }
    const page = await open(path.join(studies, study, 'report.html'));
    const widths = await page.$$eval('.panel svg.chart', all => all.map(svg => {
      const labels = [...svg.querySelectorAll('text.near')].map(e => e.getBoundingClientRect());
      return labels.flatMap((a, i) => labels.slice(i + 1).filter(b =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)).length;
    }));
    assert.equal(widths.reduce((a, b) => a + b, 0), 0, 'labels of points lie on each other');
    await page.context().close();
  }
});

await browser.close();
console.log(failed ? failed + ' failed' : 'all passed');
process.exit(failed ? 1 : 0);
