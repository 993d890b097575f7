import { startStores } from './supervisor/set-up-stores.ts';
import { ensureCompany } from './supervisor/development-company.ts';
import { supervise } from './supervisor/supervise.ts';
import { baseUrlOf, stackWelcome } from './supervisor/welcome.ts';
import { logIfSlow } from './waiting.ts';

await supervise('npm run stack', async (stack) => {
  const { settings, children, log } = stack;
  const addresses = await startStores(stack);
  const location = { stackDir: settings.stackDir, baseUrl: baseUrlOf(settings) };
  const company = ensureCompany(location, addresses, children);
  const credentials = await logIfSlow(log, 'Creating the development company …', company);
  log(stackWelcome(settings, addresses, credentials));
});
