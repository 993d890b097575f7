import { describe, expect, test } from '@jest/globals';
import { type EgressPolicy, type EgressRefusal, STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { createGuardedConnect } from './guarded-connect.ts';
import { createTlsSessions } from './tls-sessions.ts';

const strict: EgressPolicy = { ...STRICT_EGRESS, allowHttp: true };

/** Resolves with the error, the counted reasons and the dropped names. Every name resolves to 10.0.0.1. */
async function refuse(hostname: string, policy: EgressPolicy, port: number) {
  const [refused, forgotten]: [EgressRefusal[], string[]] = [[], []];
  const guarded = createGuardedConnect({
    policy,
    connectTimeoutMs: 5_000,
    hosts: {
      resolve: () => Promise.resolve([{ address: '10.0.0.1', family: 4 }]),
      forget: (name) => forgotten.push(name),
    },
    proxy: null,
    onRefused: (reason) => refused.push(reason),
    sessions: createTlsSessions({ maxBytes: 100_000, onHandshake: () => undefined }),
  });
  const target = { hostname, host: `${hostname}:${port}`, protocol: 'http:', port: String(port) };
  const error = await new Promise((done) => {
    guarded(target, (...[problem]) => {
      done(problem);
    });
  });
  return { error, refused, forgotten };
}

describe('a refusal [security]', () => {
  test.each<[EgressRefusal, string, Partial<EgressPolicy>, number]>([
    ['scheme', '8.8.8.8', { allowHttp: false }, 80],
    ['port', '8.8.8.8', {}, 6_379],
    ['host', 'kafka', {}, 80],
    ['address', '10.0.0.1', {}, 80],
    ['address', 'hook.example.com', {}, 80],
  ])(
    'by %s (%s) carries its reason, is counted once and drops no cached name',
    async (reason, name, policy, to) => {
      const { error, refused, forgotten } = await refuse(name, { ...strict, ...policy }, to);
      expect(error).toMatchObject({ code: 'EGRESS_BLOCKED', message: 'blocked address', reason });
      expect([refused, forgotten]).toEqual([[reason], []]);
    },
  );
});
