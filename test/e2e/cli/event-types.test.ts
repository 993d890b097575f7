import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { EXIT } from '../../../apps/cli/src/failures.ts';
import { run } from '../../../apps/cli/src/program.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { createResources } from '../../support/api/resources.ts';
import { useCompany } from '../../support/process/use-company.ts';

const { posthorn } = useCompany('contract');
let folder: string;
let projectId: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthorn-event-types-'));
  ({ id: projectId } = await createResources(posthorn.api).project({ name: 'Shop' }));
  writeFileSync(join(folder, 'openapi.yaml'), DOCUMENT);
}, 120_000);

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const DOCUMENT = `
openapi: 3.0.3
paths: { /orders: { get: {} } }
x-webhooks:
  order.paid:
    post:
      tags: [Orders]
      summary: An order was paid.
      requestBody:
        content:
          application/json:
            schema: { $ref: '#/components/schemas/Order' }
            example: { amount: null }
  order/sent: { post: {} }
components:
  schemas:
    Order: { type: object, properties: { amount: { type: number, nullable: true } } }
`;

async function posthornCli(args: readonly string[], stdin = '') {
  const printed: string[] = [];
  const stream = { write: (text: string) => printed.push(text) };
  const code = await run(args, {
    env: { POSTHORN_URL: posthorn.baseUrl, POSTHORN_API_KEY: posthorn.apiKey },
    folder,
    homeFolder: folder,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: stream,
    stderr: { write: () => true },
    browse: () => Promise.resolve(false),
    signal: new AbortController().signal,
  });
  return { code, printed: printed.join('') };
}

const importFile = (file: string, ...options: string[]) =>
  posthornCli(['event-type', 'import', file, '--project', projectId, ...options]);

describe('posthorn event-type', () => {
  it('says with --dry-run what an import would change, and exits with 5', async () => {
    const { code, printed } = await importFile('openapi.yaml', '--dry-run');
    expect(code).toBe(EXIT.checkFailed);
    expect(printed).toMatch(/order\.paid +created/);
    const listed = await posthorn.api.get(`/api/v1/projects/${projectId}/event-types`);
    expect(dataOf(listed)).toEqual([]);
  });

  it('imports YAML, and has nothing to change then', async () => {
    expect(await importFile('openapi.yaml')).toMatchObject({ code: EXIT.ok });
    const { code, printed } = await importFile('openapi.yaml', '--dry-run', '--json');
    expect(code).toBe(EXIT.ok);
    expect(JSON.parse(printed)).toMatchObject({ unchanged: 2, changes: [] });
  });

  it.each([[], ['--yaml']])(
    'exports %j what changes nothing when it is imported',
    async (...yaml) => {
      const exported = await posthornCli(['event-type', 'export', '--project', projectId, ...yaml]);
      expect(exported.code).toBe(EXIT.ok);
      const args = ['event-type', 'import', '-', '--project', projectId, '--json'];
      const { code, printed } = await posthornCli([...args, '--archive-missing'], exported.printed);
      expect(code).toBe(EXIT.ok);
      expect(JSON.parse(printed)).toMatchObject({ unchanged: 2, changes: [] });
    },
  );

  it('creates, changes, lists and deletes one, and tests a webhook with its example', async () => {
    const ofProject = ['--project', projectId, '--json'];
    const example = { amount: 12.5 };
    const cli = async (...args: string[]): Promise<unknown> => {
      const { code, printed } = await posthornCli(['event-type', ...args, ...ofProject]);
      expect(code).toBe(EXIT.ok);
      return JSON.parse(printed);
    };
    const names = async () => {
      const listed = (await cli('list', '--group', 'Refunds')) as { name: string }[];
      return listed.map(({ name }) => name);
    };
    const given = ['--name', 'refund/made', '--group', 'Refunds'];
    await cli('create', ...given, '--example', JSON.stringify(example));
    await cli('update', 'refund/made', '--schema', '{"type":"object"}');
    expect(await cli('get', 'refund/made')).toMatchObject({ schemaVersion: 2, example });
    expect(await names()).toEqual(['refund/made']);

    const resources = createResources(posthorn.api);
    const { id: appId } = await resources.app({ projectId });
    const { id } = await resources.webhook({ appId, url: 'https://example.com/hook' });
    const test = ['webhook', 'test', id, '--event-type', 'refund/made', '--json'];
    const { printed } = await posthornCli(test);
    const { messageId } = JSON.parse(printed) as { messageId: string };
    const sent = await posthorn.api.get(`/api/v1/webhook-messages/${messageId}`);
    const payload = JSON.stringify(example);
    expect(dataOf(sent)).toMatchObject({ eventType: 'refund/made', payload });

    await cli('delete', 'refund/made', '--yes');
    expect(await names()).toEqual([]);
  });

  it.each([
    ['a list', '[]', EXIT.usage],
    ['no YAML', '{', EXIT.usage],
    ['two documents', 'a: 1\n---\nb: 2\n', EXIT.usage],
    ['another file', 'openapi: 3.1.0\nwebhooks: {a: {$ref: other.yaml}}\n', EXIT.refused],
  ])('refuses %s', async (_, text, exitCode) => {
    const args = ['event-type', 'import', '-', '--project', projectId];
    expect(await posthornCli(args, text)).toMatchObject({ code: exitCode });
  });
});
