import { join, relative } from 'node:path';
import type { Addresses, Settings } from '../settings.ts';
import type { Credentials } from './development-company.ts';
import { opsPortOf, ALL_SERVICES } from './services.ts';

export function baseUrlOf({ host, gatewayPort }: Settings): string {
  // A client cannot connect to the address that means all interfaces.
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${gatewayPort}`;
}

/** Returns the text of `npm start` when everything is ready. */
export function welcome(
  settings: Settings,
  addresses: Addresses,
  credentials: Credentials & { signInLink: string },
): string {
  const metrics = ALL_SERVICES.map(
    (name) => `http://127.0.0.1:${opsPortOf(name, settings.opsPort)}/metrics (${name})`,
  );
  return [
    '',
    'Posthorn is ready.',
    '',
    ...rows([
      ['API', credentials.baseUrl],
      ['API key', credentials.apiKey],
      ['Dashboard', credentials.signInLink],
      ...metrics.map((url, index): Row => [index === 0 ? 'Metrics' : '', url]),
      ...storeRows(settings, addresses),
    ]),
    '',
    'The link of the dashboard opens once, within ten minutes. Another one:',
    `npm run admin -- dashboard-link ${credentials.companyId}`,
    '',
    'In two more terminals, forward deliveries to port 3000 of this machine, and send a first message:',
    '',
    'npx posthorn listen 3000',
    `npx posthorn message send --event-type order.paid --payload '{"order": 17}'`,
    '',
    'docs/quickstart.md goes on from there. npm run demo shows a delivery, its signatures and a retry.',
    'Ctrl-C stops everything. The data are kept.',
  ].join('\n');
}

/** Returns the text of `npm run stack` when everything is ready. */
export function stackWelcome(
  settings: Settings,
  addresses: Addresses,
  credentials: Credentials,
): string {
  return [
    '',
    'The backing services are ready.',
    '',
    ...rows([['API key', credentials.apiKey], ...storeRows(settings, addresses)]),
    '',
    'Run each service in its own terminal: npm run gateway, npm run dispatcher, npm run retry, npm run ingest',
    'Ctrl-C stops everything. The data are kept.',
  ].join('\n');
}

type Row = [label: string, value: string];

function storeRows({ stackDir }: Settings, addresses: Addresses): Row[] {
  const folder = relative(process.cwd(), stackDir) || '.';
  const shown = folder.startsWith('..') ? stackDir : folder;
  return [
    ['Kafka', addresses.kafkaBrokers],
    ['MongoDB', withoutPassword(addresses.mongodbUrl)],
    ['Redis', withoutPassword(addresses.redisUrl)],
    ['Logs', join(shown, 'logs')],
    ['Key and addresses', `${join(shown, 'credentials.json')}, ${join(shown, 'stack.json')}`],
  ];
}

function withoutPassword(url: string): string {
  return url.replace(/:\/\/[^/]*@/, '://***@');
}

function rows(all: readonly Row[]): string[] {
  return all.map(([label, value]) => `  ${label.padEnd(18)} ${value}`);
}
