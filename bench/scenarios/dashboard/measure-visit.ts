import type { Page } from 'playwright-core';

export interface Visit {
  url: string;
  /** A selector of what is there once the data are shown. */
  shown: string;
  /** How many times as slow the browser is made. */
  cpu: number;
}

/** So long without a long task, the page answers to whoever uses it. */
const QUIET_MS = 500;
const MOST_MS = 30_000;

/**
 * Opens a page as a browser does that has kept nothing of it but the cookie. Returns the milliseconds from the
 * beginning of the navigation until the data are shown and the last long task before a quiet time has ended.
 */
export async function measureVisit(page: Page, { url, shown, cpu }: Visit): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Page.enable');
  await session.send('Network.clearBrowserCache');
  await session.send('Emulation.setCPUThrottlingRate', { rate: cpu });
  // Not a part of the page, so its content security policy does not concern it.
  const source = watchScript(shown);
  const { identifier } = await session.send('Page.addScriptToEvaluateOnNewDocument', { source });
  try {
    await page.goto(url, { waitUntil: 'commit' });
    // Through the debugger: the content security policy lets no page evaluate text.
    const options = { expression: UNTIL_QUIET, awaitPromise: true, returnByValue: true };
    const { result } = await session.send('Runtime.evaluate', options);
    if (typeof result.value !== 'number') throw new Error(`${url} shows nothing in ${MOST_MS} ms`);
    return result.value;
  } finally {
    await session.send('Page.removeScriptToEvaluateOnNewDocument', { identifier });
    await session.detach();
  }
}

const UNTIL_QUIET = `new Promise((resolve) => {
  const look = () => {
    const nowMs = performance.now();
    const interactiveMs = Math.max(watched.shownAt, watched.busyUntil);
    if (watched.shownAt !== null && nowMs - interactiveMs > ${QUIET_MS}) resolve(interactiveMs);
    else if (nowMs > ${MOST_MS}) resolve(null);
    else setTimeout(look, 50);
  };
  look();
})`;

function watchScript(shown: string): string {
  return `
    window.watched = { shownAt: null, busyUntil: 0 };
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) watched.busyUntil = startTime + duration;
    }).observe({ type: 'longtask', buffered: true });
    new MutationObserver(() => {
      if (watched.shownAt !== null || !document.querySelector(${JSON.stringify(shown)})) return;
      watched.shownAt = performance.now();
    }).observe(document, { childList: true, subtree: true });
  `;
}
