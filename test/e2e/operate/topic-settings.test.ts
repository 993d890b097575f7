import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { applyTopicChanges } from '@posthorn/platform/kafka/apply-topic-changes.ts';
import { newEncryptionKey } from '../../../deploy/setup/create-encryption-keys.ts';
import { createNamespace } from '../../support/process/namespace.ts';
import { ADMIN, LOCAL, startService, type RunningService } from '../../support/process/posthorn.ts';
import { startProgram } from '../../support/process/service-process.ts';
import { setUp } from '../../support/process/setup.ts';
import { eventually } from '../../support/time/eventually.ts';

const namespace = createNamespace();
const env = { ...namespace, ...LOCAL, RETRY_DELAYS: '5s', ENCRYPTION_KEYS: newEncryptionKey() };
const access = { brokers: [env.KAFKA_BROKERS], tls: null, sasl: null };
const topic = (name: string): string => env.TOPIC_PREFIX + name;

/** As an operator changes a setting, or a tool that does not know what the topics are for. */
const change = (name: string, settings: Record<string, string>): Promise<void> =>
  applyTopicChanges(access, [{ topic: topic(name), settings }], { isDryRun: false });

interface Ran {
  code: number | null;
  text: string;
}

async function run(path: string, args: string[] = []): Promise<Ran> {
  const program = startProgram(path, args, { ...env, OPS_PORT: '0', LOG_LEVEL: 'silent' });
  const { code } = await program.ended;
  return { code, text: program.output() };
}
const topics = (...args: string[]): Promise<Ran> => run(ADMIN, ['topics', ...args]);

describe('Settings of topics that somebody has changed', () => {
  let retry: RunningService | null = null;

  beforeAll(() => setUp({ env, company: 'Test', isNew: true }), 60_000);

  afterAll(() => retry?.stop(), 60_000);

  it('are none after create-topics', async () => {
    expect(await topics('check')).toEqual({ code: 0, text: '11 topics, 0 differences\n' });
  });

  it('stop a service from starting where records could be lost, and are mended by a command', async () => {
    await change('retry.5s', { 'retention.ms': '4000', 'cleanup.policy': 'compact' });
    const { code, text } = await run('services/retry/src/main.ts');
    expect(code).toBe(1);
    expect(text).toBe(
      'Settings of topics could lose records or stop deliveries:\n' +
        `  ${topic('retry.5s')} has cleanup.policy=compact, wanted delete: only the newest record of each webhook is kept, the others are lost\n` +
        `  ${topic('retry.5s')} has retention.ms=4000, wanted 604805000: records are deleted before an outage of the promised length is over\n` +
        'Mend settings with `npm run admin -- topics apply` (docs/topics.md), then start again.\n',
    );
    const wouldBe = await topics('apply', '--dry-run');
    expect(wouldBe.text).toContain('2 settings of 1 topics would be written');
    expect((await topics('check')).code).toBe(1);
    expect(await topics('apply')).toEqual({
      code: 0,
      text:
        `${topic('retry.5s')}  cleanup.policy=delete\n` +
        `${topic('retry.5s')}  retention.ms=604805000\n` +
        '2 settings of 1 topics written\n',
    });
    expect((await topics('check')).code).toBe(0);
  });

  it('are warned of where they are harmless, and keep records unless it is forced', async () => {
    await change('message-created', { 'retention.ms': '-1' });
    retry = await startService('retry', { ...env, LOG_LEVEL: 'info' });
    const warning = `${topic('message-created')} has retention.ms=-1`;
    await eventually('the warning', () => Promise.resolve(retry?.output().includes(warning)));
    const metrics = await (await fetch(`${retry.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^posthorn_kafka_topic_settings_differing\S* 1$/m);
    const held = await topics('apply', '--json');
    expect(held.code).toBe(1);
    expect(JSON.parse(held.text)).toMatchObject({
      changes: [],
      held: [{ setting: 'retention.ms', value: '-1', remedy: 'apply-force' }],
    });
    expect((await topics('apply', '--force')).code).toBe(0);
    expect((await topics('check')).code).toBe(0);
  });
});
