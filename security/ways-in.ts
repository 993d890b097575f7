import type { Check } from './check.ts';

/** Single ways in: R1 to R22 were open once, the others came with what guards them. */
export const WAYS_IN: readonly Check[] = [
  {
    id: 'R1',
    tried: 'the widest webhooks in the largest pages, by one key',
    holds: 'custom headers have a limit, pages end by bytes, a company has a budget of memory',
    tests: [
      'contract/limits/quotas',
      'webhooks/lists/list-webhooks',
      'http/request/request-memory',
    ],
  },
  {
    id: 'R2',
    tried: 'more projects, apps, webhooks, keys than the quota',
    holds: '409 quota_exceeded; caches count bytes',
    tests: ['contract/limits/quotas', 'limits/quotas', 'async/coalescing-cache'],
  },
  {
    id: 'R3',
    tried: 'messages with very many targets and with idempotency keys',
    holds: 'refused above the limit; what is kept is sealed and small; one document fails alone',
    tests: ['contract/limits/quotas', 'contract/idempotency', 'accept/sealed-responses'],
  },
  {
    id: 'R4',
    tried: 'records of a stranger on every topic, and a Kafka without rights',
    holds: 'refused by MAC and by the store; TLS, SASL and ACLs work as documented',
    tests: ['operate/forged-records', 'operate/secured-kafka', 'publishing/record-mac'],
  },
  {
    id: 'R5',
    tried: 'pods of the manifests reached from, or reaching, where they need not',
    holds: 'NetworkPolicies deny by default and allow what is documented',
    tests: ['test/deploy/network-policies'],
  },
  {
    id: 'R6',
    tried: 'webhooks that call this API, with its own headers',
    holds: 'reserved headers, denied hosts, and 400 for a delivery that arrives at the API',
    tests: [
      'contract/requests/envelope-and-errors',
      'webhooks/webhook-headers',
      'egress/egress-rules',
    ],
  },
  {
    id: 'R7',
    tried: 'flooding one endpoint by way of deliveries',
    holds:
      'attempts to an endpoint at once have a limit that falls with its answers, those to a host a pace if one is set',
    tests: [
      'isolation/endpoint/concurrency-limit',
      'isolation/endpoint/host-pace',
      'deliver/busy-endpoint',
    ],
  },
  {
    id: 'R8',
    tried: 'resending the same failures again and again',
    holds: '409 while one runs, in pages of bounded size',
    tests: ['resend/start-resend', 'resend/resend-page-budget'],
  },
  {
    id: 'R9',
    tried: 'made-up keys in large numbers, before authentication',
    holds:
      'a wrong checksum costs no look-up, nor does what has a right one beyond the limit: 429, and five look-ups a second; 200 for all addresses',
    tests: [
      'api-keys/authenticate',
      'limits/miss-budget',
      'contract/limits/wrong-keys',
      'contract/limits/rate-limits',
    ],
  },
  {
    id: 'R10',
    tried: 'all connections and all memory for bodies from one address',
    holds: 'limits of connections per address and of bytes per company',
    tests: ['connections/limit-connections', 'http/request/request-memory'],
  },
  {
    id: 'R11',
    tried: 'keys with scopes, of one app, expired and rotated',
    holds: 'they can do what they are for and nothing else',
    tests: ['contract/keys/key-scopes', 'contract/keys/api-keys', 'api-keys/key-rights'],
  },
  {
    id: 'R12',
    tried: 'own public addresses and hosts as targets',
    holds: 'EGRESS_DENY_CIDRS and EGRESS_DENY_HOSTS win over what is allowed',
    tests: ['egress/egress-rules'],
  },
  {
    id: 'R13',
    tried: 'metadata addresses inside opened ranges',
    holds: 'refused whatever is opened',
    tests: ['egress/egress-rules'],
  },
  {
    id: 'R14',
    tried: 'another URL in the database, to get the credentials of a webhook sent there',
    holds: 'does not open: a value is bound to scheme, host and port of its URL',
    tests: ['src/vault/', 'mongo/webhooks/'],
  },
  {
    id: 'R15',
    tried: 'more seals than one key of AES-GCM is good for',
    holds: 'a key of its own for each document',
    tests: ['src/vault/'],
  },
  {
    id: 'R16',
    tried: 'ports of infrastructure',
    holds: 'refused; EGRESS_ALLOW_PORTS narrows the rest',
    tests: ['egress/egress-rules'],
  },
  {
    id: 'R17',
    tried: 'secrets that are too short',
    holds: 'ours have 32 random bytes; the documentation says what others should have',
    tests: ['contract/webhooks/webhooks.test', 'contract/rotation', 'companies/companies.int'],
  },
  {
    id: 'R18',
    tried: 'caching of answers with secrets, and guessing of their type',
    holds: 'no-store and nosniff everywhere',
    tests: ['contract/requests/envelope-and-errors'],
  },
  {
    id: 'R19',
    tried: 'packages with advisories or forbidden licences, install scripts',
    holds: 'exact versions, a list of reasons, scripts off',
    tests: ['test/documents/dependencies', 'packages/package-rules', 'test/deploy/manifests'],
  },
  {
    id: 'R20',
    tried: 'deliveries of the compose stack to its own stores',
    holds: 'one host is open, the stores are not',
    tests: ['test/deploy/compose'],
  },
  {
    id: 'R21',
    tried: 'headers of metadata services, unknown methods',
    holds: 'refused; 405 with Allow',
    tests: ['request/header-rules', 'generated-requests', 'contract/requests/hostile-'],
  },
  {
    id: 'R22',
    tried: 'stores without TLS in production, rights that a process does not need',
    holds: 'the start is refused; MongoDB and Redis refuse the command',
    tests: [
      'operate/secured-stack',
      'operate/redis-rights',
      'stores/plaintext-stores',
      'test/deploy/mongodb-rights',
      'test/deploy/redis-rights',
    ],
  },
  {
    id: 'R23',
    tried: 'an egress proxy that fails, refuses, or is asked for a private address',
    holds: 'egress rules come first, it sees no request, its faults are not those of endpoints',
    tests: ['egress/egress-proxy', 'send-webhook-proxy', 'connect/proxy/open-proxy'],
  },
  {
    id: 'R24',
    tried: 'token servers that refuse, fail or answer too much; credentials read back',
    holds: 'nothing is sent without a token, tokens are not shared, the secret is shown to nobody',
    tests: ['contract-after-retries/oauth2', 'sending/tokens/', 'request/access-token'],
  },
  {
    id: 'R25',
    tried: 'endpoints with another certificate, keys of client certificates read back',
    holds: 'refused before the request; no answer, log or audit event has the key',
    tests: ['webhooks/endpoint-tls', 'send-webhook-tls'],
  },
  {
    id: 'R26',
    tried: 'signing keys of another company, rotated, in the database',
    holds: 'private keys are sealed; the public ones verify, through a rotation',
    tests: [
      'webhooks/signing-keys',
      'request/signing-keys',
      'mongo/signing-keys/',
      'load-signing-keys',
    ],
  },
  {
    id: 'R27',
    tried: 'changes and reads of secrets past the audit log, by a gateway that is killed too',
    holds: 'an event before each change, without secrets, for keys with admin only',
    tests: ['contract/audit', 'audit/record-request', 'audit/audit-log'],
  },
  {
    id: 'R28',
    tried: 'requests and deliveries of a company that is suspended or deleted',
    holds: 'keys are refused, deliveries held; after a deletion nothing is left',
    tests: ['company/suspended', 'company/deleted', 'load/suspended-companies'],
  },
  {
    id: 'R29',
    tried:
      'bodies and half-sent sign-ins in chunks of one byte, thousands of headers, with and without a key',
    holds: '400, 408, 431 or 503 by address; the memory of the process does not grow',
    tests: [
      'contract/limits/small-chunks',
      'http/request/receive-body',
      'http/request/request-memory',
      'connections/harden-server',
      'memory/byte-collector',
    ],
  },
];
