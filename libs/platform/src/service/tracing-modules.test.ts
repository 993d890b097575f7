import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '../../../..');

/**
 * Loads everything that a service loads, opens its spans, and prints how many modules of the SDK and the exporter of
 * OpenTelemetry were loaded. prom-client loads the package `api` in any case, for exemplars.
 */
const PROGRAM = `
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  await import('./services/' + process.env.SERVICE + '/src/start.ts');
  const { openSpans } = await import('./libs/platform/src/service/spans.ts');
  const { Registry } = await import('./node_modules/prom-client/index.js').then((module) => module.default);
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: process.env.ENDPOINT, OTEL_TRACES_SAMPLER: 'always_on', OTEL_TRACES_SAMPLER_ARG: 1 };
  const spans = await openSpans('test', { config, logger: null, registry: new Registry(), lifecycle: { onStop() {} } });
  const modules = loaded.filter((url) => /@opentelemetry\\/(?!api\\/)/.test(url));
  console.log(JSON.stringify({ isOpen: spans !== null, loaded: loaded.length, modules: modules.length }));
`;

function run(service: string, endpoint: string | undefined) {
  const output = execFileSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', PROGRAM],
    {
      cwd: ROOT,
      encoding: 'utf8',
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        SERVICE: service,
        ...(endpoint && { ENDPOINT: endpoint }),
      },
    },
  );
  return JSON.parse(output) as { isOpen: boolean; loaded: number; modules: number };
}

describe('Without OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  it.each(['gateway', 'dispatcher'])(
    'the %s loads nothing of the SDK of OpenTelemetry and its exporter',
    (service) => {
      const { isOpen, loaded, modules } = run(service, undefined);
      expect({ isOpen, modules }).toEqual({ isOpen: false, modules: 0 });
      expect(loaded).toBeGreaterThan(200);
    },
  );

  it('but with it they are loaded', () => {
    const { isOpen, modules } = run('gateway', 'http://127.0.0.1:4318');
    expect(isOpen).toBe(true);
    expect(modules).toBeGreaterThan(10);
  });
});
