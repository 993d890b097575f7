import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const FOLDER = join(import.meta.dirname, '../../../.local/screenshots');

/** Returns what people without sight or mouse would meet on the present page (WCAG 2.2 AA). */
export async function findBarriers(page: Page): Promise<string[]> {
  const run = `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ': ' + target.join(' '))))`;
  // Through the debugger: the content security policy lets no page run this.
  const session = await page.context().newCDPSession(page);
  const expression = `${AXE};${run}`;
  const options = { expression, awaitPromise: true, returnByValue: true };
  const { result } = await session.send('Runtime.evaluate', options);
  await session.detach();
  return result.value as string[];
}

/** Whether something is wider than the window, so that one would have to scroll sideways. */
export async function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(
    `[document.documentElement, ...document.querySelectorAll('main')]
      .some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)`,
  );
}

/** Keeps a picture of the page in .local/screenshots. */
export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
}
