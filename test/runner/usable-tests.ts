import {
  ensurePrograms,
  MissingProgramsError,
} from '../../tools/check-ops/programs/ensure-programs.ts';
import { buildDashboard, isDashboardOutdated } from '../../tools/dashboard/build-dashboard.ts';
import type { Report } from './report.ts';

const NEEDS_BROWSER = 'test/e2e/dashboard/';
const CHROMIUM = { name: 'chromium', aptPackage: 'chromium' };

/**
 * Returns the end-to-end tests that can run here, with what they need in place. Without a browser, those of the
 * dashboard cannot: a person is told so, and in CI the run fails.
 */
export async function usableTests(files: readonly string[], report: Report): Promise<string[]> {
  const others = files.filter((file) => !file.startsWith(NEEDS_BROWSER));
  if (others.length === files.length) return [...files];
  try {
    await ensurePrograms([CHROMIUM], (line) => {
      console.log(line);
    });
  } catch (error) {
    if (!(error instanceof MissingProgramsError)) throw error;
    const reason = `NOT CHECKED: the dashboard in a browser. ${error.message}`;
    if (process.env.CI === undefined) console.error(reason);
    else report.fail(reason);
    return others;
  }
  if (isDashboardOutdated()) await buildDashboard();
  return [...files];
}
