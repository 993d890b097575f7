import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  startConnectProxy,
  type ConnectProxy,
} from '../../../../../../test/support/receivers/connect-proxy.ts';
import { selfSigned } from '../../../../../../test/support/receivers/self-signed.ts';
import { openEgressProxy } from './open-egress-proxy.ts';

const identity = selfSigned('localhost');

let dir: string;
let proxy: ConnectProxy;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-proxy-'));
  proxy = await startConnectProxy(identity);
  proxy.url.hostname = 'localhost';
});

afterEach(async () => {
  await proxy.close();
  rmSync(dir, { recursive: true });
});

const open = (caFile: string) =>
  openEgressProxy(
    {
      EGRESS_PROXY_URL: proxy.url,
      EGRESS_PROXY_CA_FILE: caFile,
      EGRESS_PROXY_TARGET: 'address',
      DELIVERY_TIMEOUT_MS: 10_000,
    },
    () => undefined,
  );

test('an https proxy is trusted by the CA that is in its file now', async () => {
  const caFile = join(dir, 'ca.pem');
  writeFileSync(caFile, selfSigned('localhost').cert);
  const egress = open(caFile);
  proxy.behave({ kind: 'answer', status: 403 });
  const refusal = (): Promise<unknown> =>
    egress?.openTunnel('203.0.113.7:443').catch((error: unknown) => error) ?? Promise.resolve();
  expect(await refusal()).toMatchObject({ result: 'fault' });
  writeFileSync(caFile, `${identity.cert}\n`);
  expect(await refusal()).toMatchObject({ result: 'refused' });
});

test('a CA file that cannot be read is refused at the start, by its name', () => {
  expect(() => open(join(dir, 'none.pem'))).toThrow(/TLS files of the egress proxy.*none\.pem/);
});
