import { describe, expect, it } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ApiDocument, operationsOf } from '../../../../test/support/api/api-document.ts';
import { routeTable } from '../../../../test/support/api/route-table.ts';
import { createDocument } from './document.ts';
import { DASHBOARD_CODES, ERROR_CODES } from '../error-codes.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const routes = routeTable();
const document = JSON.parse(JSON.stringify(createDocument(routes))) as ApiDocument;
const operations = operationsOf(document);

/** The sources of the gateway but the table itself. */
const sources = globSync('services/gateway/src/**/*.ts', { cwd: ROOT })
  .filter((path) => !/\.test\.ts$|\/error-codes\.ts$/.test(path))
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n');

describe('the error codes of the document', () => {
  it('are each thrown somewhere', () => {
    // Codes of links are made of `link_` and the reason why the link does not open.
    const unused = Object.keys(ERROR_CODES).filter(
      (code) => !code.startsWith('link_') && !sources.includes(`'${code}'`),
    );
    expect(unused).toEqual([]);
  });

  it('each belong to an operation, with their status', () => {
    const documented = operations.flatMap(({ answers }) =>
      [...answers].flatMap(([status, { examples }]) =>
        examples.flatMap((each) => {
          const { code } = each as { code?: string };
          return code === undefined ? [] : [`${status} ${code}`];
        }),
      ),
    );
    // Another method is of no operation.
    const ofOperations = Object.entries(ERROR_CODES).filter(
      ([code]) => code !== 'method_not_allowed' && !(code in DASHBOARD_CODES),
    );
    const expected = ofOperations.map(([code, { status }]) => `${status} ${code}`);
    expect([...new Set(documented)].sort()).toEqual(expected.sort());
  });

  it('are those in the decision record', () => {
    const decision = readFileSync(join(ROOT, 'docs/decisions/0004-api-errors.md'), 'utf8');
    const rows = [...decision.matchAll(/^\|\s*(\d{3})\s*\|\s*`(\w+)`/gm)];
    const expected = Object.entries(ERROR_CODES).map(([code, { status }]) => `${status} ${code}`);
    expect(rows.map(([, status = '', code = '']) => `${status} ${code}`).sort()).toEqual(
      expected.sort(),
    );
  });
});
