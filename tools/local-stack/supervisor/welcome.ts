import { join, relative } from 'node:path';
import type { Addresses, Settings } from '../settings.ts';
import type { Credentials } from './company.ts';
import { opsPortOf, SERVICES } from './services.ts';

export function baseUrlOf({ host, gatewayPort }: Settings): string {
  // An address that means "every interface" is none to connect to.
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${gatewayPort}`;
}

/** What `npm start` says when all is ready. */
export function welcome(
  settings: Settings,
  addresses: Addresses,
  credentials: Credentials,
): string {
  const metrics = SERVICES.map(
    (name) => `http://127.0.0.1:${opsPortOf(name, settings.opsPort)}/metrics (${name})`,
  );
  return [
    '',
    'Posthorn is ready.',
    '',
    ...rows([
      ['API', credentials.baseUrl],
      ['API key', credentials.apiKey],
      ...metrics.map((url, index): Row => [index === 0 ? 'Metrics' : '', url]),
      ...storeRows(settings, addresses),
    ]),
    '',
    'A first message, delivered to a webhook that nobody listens to yet (so that it is retried). Paste:',
    '',
    ...firstRequest(credentials),
    '',
    'A receiver with verified signatures and a retry, in a second terminal: npm run demo',
    'Ctrl-C stops everything; data stay where they are.',
  ].join('\n');
}

/** What `npm run stack` says. */
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
    'Each service in a terminal of its own: npm run gateway, npm run dispatcher, npm run retry',
    'Ctrl-C stops everything; data stay where they are.',
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
  return url.replace(/:\/\/[^/@]*@/, '://***@');
}

function rows(all: readonly Row[]): string[] {
  return all.map(([label, value]) => `  ${label.padEnd(18)} ${value}`);
}

/** Plain shell, curl and sed: whoever tries Posthorn for the first time need not install anything more. */
function firstRequest({ baseUrl, apiKey }: Credentials): string[] {
  return [
    `API=${baseUrl} KEY=${apiKey}`,
    'post() { curl -sS "$API$1" -H "x-api-key: $KEY" -H "content-type: application/json" -d "$2"; }',
    `id() { sed -E 's/.*"id" *: *"([^"]+)".*/\\1/'; }`,
    `PROJECT=$(post /projects '{"name":"Shop"}' | id)`,
    `APP=$(post /apps '{"name":"Orders","projectId":"'$PROJECT'"}' | id)`,
    `post /webhooks '{"url":"http://localhost:9999/hook","appId":"'$APP'"}'; echo`,
    `post /webhook-messages '{"appId":"'$APP'","payload":{"order":1}}'; echo`,
  ];
}
