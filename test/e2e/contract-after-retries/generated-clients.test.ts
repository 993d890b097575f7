import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { STRICT_EGRESS } from '@posthorn/domain/egress.ts';
import { openapiText } from '../../../docs/write-openapi.ts';
import { operationsOf, type ApiDocument } from '../../support/api/api-document.ts';
import { pythonClient, typescriptClient } from '../../support/clients/generated-clients.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { scratchFolder } from '../../support/process/scratch-folder.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

/** Where nothing is in the cache, the generators are downloaded first. */
const TIMEOUT_MS = 600_000;

describe('clients generated from /openapi.json', () => {
  let posthorn: OwnCompany;
  let receiver: Receiver;
  let document: ApiDocument;

  beforeAll(async () => {
    posthorn = await joinShared('contract-after-retries');
    receiver = await startReceiver();
    receiver.answerWith((response, { path }) => {
      response.writeHead(path.endsWith('/bad') ? 500 : 200).end('noted');
    });
    document = (await (await fetch(`${posthorn.baseUrl}/openapi.json`)).json()) as ApiDocument;
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  });

  it('are generated from docs/openapi.json of the release, with URLs of http too', () => {
    const policy = { ...STRICT_EGRESS, allowHttp: true };
    expect(document).toEqual(JSON.parse(openapiText(policy)));
  });

  it.each([
    ['TypeScript', typescriptClient, (id: string) => id],
    ['Python', pythonClient, snakeCase],
  ] as const)(
    'make thirty different calls in %s, and read each response as its schema',
    async (_language, generate, nameOf) => {
      const folder = scratchFolder();
      const file = join(folder, 'openapi.json');
      writeFileSync(file, JSON.stringify(document));
      const run = await generate(file, folder);
      const { baseUrl, apiKey, companyId } = posthorn;
      const called = await run({
        BASE_URL: baseUrl,
        API_KEY: apiKey,
        COMPANY_ID: companyId,
        RECEIVER_URL: receiver.url,
      });
      const operations = operationsOf(document).map(({ id }) => nameOf(id));
      expect(operations).toEqual(expect.arrayContaining(called));
      expect(called.length).toBeGreaterThanOrEqual(30);
    },
    TIMEOUT_MS,
  );
});

function snakeCase(id: string): string {
  return id.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
