import { reasonOf } from '../stack-error.ts';
import { buildDashboard, isDashboardOutdated } from '../../dashboard/build-dashboard.ts';

/** Builds the dashboard when its sources are newer. A failure is told and stops nothing else: the API works without it. */
export async function ensureDashboard(log: (line: string) => void): Promise<void> {
  if (!isDashboardOutdated()) return;
  log('Building the dashboard …');
  try {
    await buildDashboard();
  } catch (error) {
    log(`The dashboard could not be built, so /dashboard shows nothing: ${reasonOf(error)}`);
  }
}
