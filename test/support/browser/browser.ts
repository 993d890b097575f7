import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { BROWSER, findProgram } from '../../../tools/local-stack/machine/required-programs.ts';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const ACTION_TIMEOUT_MS = 60_000;

type Scheme = 'light' | 'dark';

interface View {
  width: number;
  height: number;
  scheme: Scheme;
}

export const WIDE = { width: 1_440, height: 900 };
export const NARROW = { width: 390, height: 844 };

/** A browser without a past. */
export interface Browser {
  page: Page;
  show: (view: View) => Promise<void>;
  /** What no page may have: errors in the console, exceptions, requests to another origin. */
  faults: () => readonly string[];
  close: () => Promise<void>;
}

/** Starts Chromium. `origins` are the only ones to which pages may send requests. */
export async function startBrowser(...origins: readonly string[]): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-browser-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: findProgram(BROWSER) ?? BROWSER,
    args: FLAGS,
    viewport: WIDE,
    // A dialog that fades in has the colours of no state.
    reducedMotion: 'reduce',
    // Certificates of tests are self-signed.
    ignoreHTTPSErrors: true,
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(ACTION_TIMEOUT_MS);
  const page = context.pages()[0] ?? (await context.newPage());
  const faults = watch(context, page, origins);
  return {
    page,
    async show({ width, height, scheme }) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
    },
    faults: () => faults,
    async close() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A refused call is an answer that a page shows; the browser reports it in the console all the same. So does a gateway
 * whose stores are slow refuse one, on a busy machine.
 */
const REFUSED_CALL = /Failed to load resource: the server responded with a status of (4\d\d|503)/;

function watch(context: BrowserContext, page: Page, origins: readonly string[]): string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() !== 'error' || REFUSED_CALL.test(message.text())) return;
    faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
  context.on('request', (request) => {
    const url = request.url();
    const isExpected = origins.some((origin) => url.startsWith(`${origin}/`));
    if (!isExpected && !url.startsWith('data:')) faults.push(`asked ${url}`);
  });
  return faults;
}

/** Signs in with an API key, as a person does. */
export async function signIn(
  page: Page,
  { baseUrl, companyId, apiKey }: { baseUrl: string; companyId: string; apiKey: string },
): Promise<void> {
  await page.goto(`${baseUrl}/dashboard/`);
  await page.getByLabel('Company id').fill(companyId);
  await page.getByLabel(/^API key/).fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
}
