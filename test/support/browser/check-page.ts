import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** Ends what fades in or out: until then its colours are those of no state. What turns for ever has no end. */
const END_FADES = `document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
  .forEach((animation) => animation.finish())`;
const FOLDER = join(import.meta.dirname, '../../../.local/screenshots');

/**
 * Returns the barriers for people without sight or mouse on the present page (WCAG 2.2 AA). With `isContrastOnly`, those
 * of its colours alone: nothing else changes from light to dark.
 */
export async function findBarriers(page: Page, isContrastOnly = false): Promise<string[]> {
  const runOnly = isContrastOnly ? { type: 'rule', values: ['color-contrast'] } : RULES;
  const run = `axe.run(document, { runOnly: ${JSON.stringify(runOnly)} }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target.join(' '))))`;
  // Through the debugger: the content security policy lets no page run this.
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression: string): Promise<unknown> => {
    const options = { expression, awaitPromise: true, returnByValue: true };
    return (await session.send('Runtime.evaluate', options)).result.value;
  };
  if ((await evaluate('typeof axe')) === 'undefined') await evaluate(AXE);
  await evaluate(END_FADES);
  const barriers = (await evaluate(run)) as string[];
  await session.detach();
  return barriers;
}

/** Whether something makes the page scroll, which only `main` may, up and down, or is wider than its cell of a table. */
export async function isTooLarge(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(
    `(() => {
      const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
      const wide = [...document.querySelectorAll('main')].some(
        (main) => main.scrollWidth > main.clientWidth + 1);
      const cut = [...document.querySelectorAll('main th, main td')].some(
        (cell) => cell.scrollWidth > cell.clientWidth + 1);
      return wide || cut || scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1;
    })()`,
  );
}

const MAX_HEIGHT = 6_000;

/**
 * With SCREENSHOTS=1, keeps a picture of the page, with everything to which `main` scrolls, in .local/screenshots. The 300
 * pictures of a whole run were half of the work of the browser.
 */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS !== '1') return;
  mkdirSync(FOLDER, { recursive: true });
  const size = page.viewportSize();
  const below = await page.evaluate<number>(
    `Math.max(0, ...[...document.querySelectorAll('main')].map(
      ({ scrollHeight, clientHeight }) => scrollHeight - clientHeight))`,
  );
  const height = Math.min((size?.height ?? 0) + below, MAX_HEIGHT);
  if (size) await page.setViewportSize({ ...size, height });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  if (size) await page.setViewportSize(size);
}
