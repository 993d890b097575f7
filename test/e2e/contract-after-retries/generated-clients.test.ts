import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { openapiText } from '../../../docs/write-openapi.ts';
import { operationsOf, type ApiDocument } from '../../support/api/api-document.ts';
import { pythonClient, typescriptClient } from '../../support/clients/generated-clients.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { insertPeople } from '../../support/stores/insert-people.ts';

/** Where nothing is in the cache, the generators are downloaded first. */
const TIMEOUT_MS = 600_000;

describe('clients generated from /openapi.json', () => {
  const { posthorn } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let document: ApiDocument;

  beforeAll(async () => {
    receiver.answerWith((response, { path }) => {
      response.writeHead(path.endsWith('/bad') ? 500 : 200).end('noted');
    });
    document = (await (await fetch(`${posthorn.baseUrl}/openapi.json`)).json()) as ApiDocument;
  }, 120_000);

  it('are generated from docs/openapi.json of the release, with URLs of http too', () => {
    const policy = { ...STRICT_EGRESS, allowHttp: true };
    expect(document).toEqual(JSON.parse(openapiText(policy)));
  });

  it.each([
    ['TypeScript', typescriptClient, (id: string) => id],
    ['Python', pythonClient, snakeCase],
  ] as const)(
    'make forty different calls in %s, and read each response as its schema',
    async (_language, generate, nameOf) => {
      const folder = scratchFolder();
      const file = join(folder, 'openapi.json');
      writeFileSync(file, JSON.stringify(document));
      const run = await generate(file, folder);
      const { baseUrl, apiKey, companyId, env } = posthorn;
      await insertPeople(env.MONGODB_URL, companyId, 1);
      const called = await run({
        BASE_URL: baseUrl,
        API_KEY: apiKey,
        COMPANY_ID: companyId,
        RECEIVER_URL: receiver.url,
      });
      const operations = operationsOf(document).map(({ id }) => nameOf(id));
      expect(operations).toEqual(expect.arrayContaining(called));
      expect(called.length).toBeGreaterThanOrEqual(40);
    },
    TIMEOUT_MS,
  );
});

function snakeCase(id: string): string {
  return id.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
