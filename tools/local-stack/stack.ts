import { bringUpStores } from './supervisor/bring-up.ts';
import { provideCompany } from './supervisor/company.ts';
import { supervise } from './supervisor/supervise.ts';
import { baseUrlOf, stackWelcome } from './supervisor/welcome.ts';
import { narrate } from './waiting.ts';

await supervise('npm run stack', async (stack) => {
  const { settings, children, log } = stack;
  const addresses = await bringUpStores(stack);
  const place = { stackDir: settings.stackDir, baseUrl: baseUrlOf(settings) };
  const company = provideCompany(place, addresses, children);
  const credentials = await narrate(log, 'Creating the development company …', company);
  log(stackWelcome(settings, addresses, credentials));
});
