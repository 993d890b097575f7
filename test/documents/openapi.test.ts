import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { OPENAPI_FILE, openapiText } from '../../docs/write-openapi.ts';
import { runProgram } from '../../tools/check-ops/programs/run-program.ts';

it('docs/openapi.json is up to date with the routes (node docs/write-openapi.ts)', () => {
  const isUpToDate = readFileSync(OPENAPI_FILE, 'utf8') === openapiText();
  // Not the texts: their difference would be thousands of lines.
  expect({ isUpToDate, command: 'node docs/write-openapi.ts' }).toMatchObject({ isUpToDate: true });
});

it('docs/openapi.json has neither an error nor a warning by redocly.yaml', async () => {
  const command = ['node_modules/@redocly/cli/bin/cli.js', 'lint', 'docs/openapi.json'];
  const env = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const args = [...command, '--config', 'redocly.yaml', '--format', 'json'];
  const { totals } = JSON.parse(await runProgram(process.execPath, args, { env })) as Report;
  expect(totals).toEqual({ errors: 0, warnings: 0, ignored: 0 });
});

interface Report {
  totals: { errors: number; warnings: number; ignored: number };
}
