import { expect, test } from '@jest/globals';
import type { ExportedThing } from '@posthorn/platform/mongo/companies/company-export.ts';
import { PassThrough } from 'node:stream';
import { writeExport } from './export.ts';

async function* things(...all: (ExportedThing | Error)[]): AsyncGenerator<ExportedThing> {
  for (const each of all) {
    if (each instanceof Error) throw each;
    yield await Promise.resolve(each);
  }
}

/** Returns the lines that were written, and what the writing ended with. */
async function write(...all: (ExportedThing | Error)[]) {
  const target = new PassThrough();
  const written: string[] = [];
  target.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const deps = { companyId: 'comp_1', withSecrets: false, nowMs: () => 0 };
  const ended: unknown = await writeExport({ ...deps, things: things(...all) }, target).catch(
    (error: unknown) => error,
  );
  const lines = written.join('').trimEnd().split('\n');
  return { ended, lines: lines.map((line) => JSON.parse(line) as object) };
}

const COMPANY = { type: 'company', id: 'comp_1', name: 'Acme' };
const HEADER = {
  type: 'header',
  format: 'posthorn-company-export',
  version: 1,
  companyId: 'comp_1',
  withSecrets: false,
  exportedAt: '1970-01-01T00:00:00.000Z',
};

test('an export has a header, every thing on its line, and the counts at the end', async () => {
  const messages = ['msg_1', 'msg_2'].map((id) => ({ type: 'message', id, payload: '{"a":"\n"}' }));
  const { ended, lines } = await write(COMPANY, ...messages);
  const counts = { company: 1, message: 2 };
  expect(lines).toEqual([HEADER, COMPANY, ...messages, { type: 'end', counts }]);
  expect(ended).toEqual(counts);
});

test('an export that fails has no end', async () => {
  const { ended, lines } = await write(COMPANY, new Error('the store is away'));
  expect(ended).toEqual(new Error('the store is away'));
  expect(lines).not.toContainEqual(expect.objectContaining({ type: 'end' }));
});

test('an unknown company is refused', async () => {
  const { ended, lines } = await write();
  expect([ended, lines]).toEqual([new Error('There is no company comp_1.'), [HEADER]]);
});
