import type { Check } from './check.ts';

const EGRESS = ['libs/domain/src/egress/', 'sending/connect/', 'send-webhook-egress'];

export const AREAS: readonly Check[] = [
  {
    id: 'S1',
    tried:
      'every private, special and metadata range, as literal, as DNS answer, in every notation',
    holds: 'refused before a connection is made, recorded as egress_blocked',
    tests: EGRESS,
  },
  {
    id: 'S2',
    tried: 'DNS rebinding, a public and a private answer together, redirects to loopback',
    holds: 'one look-up per connection, the checked address is used, no redirect is followed',
    tests: ['guarded-connect', 'send-webhook-egress', 'resolve-host'],
  },
  {
    id: 'S3',
    tried:
      'receivers that stay silent, drip byte by byte, never end, send 100 kB of headers, 200 at once',
    holds: 'each ends at its deadline, at most 64 KiB are read, memory is bounded',
    tests: [
      'send-webhook-crowd',
      'send-webhook-faults',
      'prepare-socket',
      'response-capture',
      'deliver/dripping-endpoints',
    ],
  },
  {
    id: 'S4',
    tried: 'CR, LF, NUL, other characters, too long values, reserved names in headers',
    holds: '400; forced into the database, the delivery is not sent',
    tests: ['request/header-rules', 'webhooks/webhook-headers', 'request/delivery-headers'],
  },
  {
    id: 'S5',
    tried: 'a key of one company, of one app or with other scopes at every route with foreign ids',
    holds: '404 as for an unknown id, 403 for a missing scope, nothing changed',
    tests: ['contract-after-retries/tenants', 'keys-of-one-app', 'contract/keys/key-scopes'],
  },
  {
    id: 'S6',
    tried: 'no key, wrong, revoked, expired, in the query; a hundred wrong keys',
    holds: '401, then 429; no key is logged',
    tests: ['contract/limits/wrong-keys', 'api-keys/authenticate'],
  },
  {
    id: 'S7',
    tried: 'operators, dotted keys and prototypes in every string, query and path position',
    holds: '400, or taken as text; no prototype is polluted',
    tests: ['contract/requests/hostile-values'],
  },
  {
    id: 'S8',
    tried: 'one byte too much, depth 65, 100,000 keys, gzip, slow uploads, 5,000 connections',
    holds: '4xx, and other requests are answered meanwhile',
    tests: [
      'contract/requests/hostile-requests',
      'connections/harden-server',
      'connections/request-deadlines',
    ],
  },
  {
    id: 'S9',
    tried: 'reading secrets in the database; changing and moving what is sealed; rotating keys',
    holds: 'nothing readable; a changed or moved value stops its webhook; rotation loses nothing',
    tests: ['operate/secrets-at-rest', 'src/vault/', 'webhooks-reseal'],
  },
  {
    id: 'S10',
    tried: 'a search of logs at the most talkative level and of metrics for secrets and payloads',
    holds: 'no hit',
    tests: ['operate/nothing-leaks', 'operate/operations'],
  },
  {
    id: 'S11',
    tried: 'reference vectors and negatives of Standard Webhooks; odd payloads byte for byte',
    holds: 'the standardwebhooks package verifies each delivery; bodies are equal',
    tests: ['request/signature', 'contract/deliver.test', 'contract/requests/payload-bytes'],
  },
  {
    id: 'S12',
    tried: 'valid and invalid requests generated from the API document',
    holds: 'no 5xx, only documented responses, nothing forbidden is accepted',
    tests: ['contract-after-retries/generated-requests'],
  },
  {
    id: 'S13',
    tried: 'unreadable, oversized, unknown and forged records on every topic',
    holds: 'dead letters with a reason; nothing is sent; records behind them go on',
    tests: ['outages/unreadable-records', 'operate/forged-records'],
  },
];
