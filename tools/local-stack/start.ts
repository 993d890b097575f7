import { startStores, requireStackPorts } from './supervisor/set-up-stores.ts';
import { createSignInLink, ensureCompany } from './supervisor/development-company.ts';
import { grantRoles, type PeopleEnv, peopleWelcome, startPeople } from './supervisor/people.ts';
import { ALL_SERVICES, startServices } from './supervisor/services.ts';
import { writeStackFile } from './supervisor/stack-file.ts';
import { supervise } from './supervisor/supervise.ts';
import { baseUrlOf, welcome } from './supervisor/welcome.ts';
import { logIfSlow } from './waiting.ts';
import { reasonOf } from './stack-error.ts';
import { buildDashboard, isDashboardOutdated } from '../dashboard/build-dashboard.ts';

/** Whether people sign in, at an issuer on this machine. */
const isWithPeople = process.argv.includes('--people');

await supervise('npm start', async (stack) => {
  const { settings, children, log } = stack;
  const { stackDir } = settings;
  const issuer = {
    port: settings.issuerPort,
    use: 'the issuer of people',
    variable: 'ISSUER_PORT',
  };
  await requireStackPorts(settings, isWithPeople ? [issuer] : []);
  // Beside the stores, which take longer.
  const dashboard = ensureDashboard(log);
  const addresses = await startStores(stack);
  await dashboard;
  const people: PeopleEnv | null = isWithPeople ? await startPeople(settings, children) : null;
  const baseUrl = baseUrlOf(settings);
  const [credentials] = await logIfSlow(
    log,
    'Starting gateway, dispatcher, retry and ingest …',
    Promise.all([
      ensureCompany({ stackDir, baseUrl }, addresses, children),
      startServices(settings, addresses, children, {
        services: ALL_SERVICES,
        number: 1,
        env: { ...people },
      }),
    ]),
  );
  writeStackFile(stackDir, { processes: children.list(), ...addresses });
  const signInLink = await createSignInLink(credentials, addresses, children);
  if (people !== null) await grantRoles(credentials, addresses, children);
  log(welcome(settings, addresses, { ...credentials, signInLink }));
  if (people !== null) log(peopleWelcome(people));
});

/** Builds the dashboard when its sources are newer. A failure is only logged: the API works without it. */
async function ensureDashboard(log: (line: string) => void): Promise<void> {
  if (!isDashboardOutdated()) return;
  log('Building the dashboard …');
  try {
    await buildDashboard();
  } catch (error) {
    log(`The dashboard could not be built, so /dashboard shows nothing: ${reasonOf(error)}`);
  }
}
