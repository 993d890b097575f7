import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { applyTopicChanges } from '@posthorn/platform/kafka/apply-topic-changes.ts';
import { createKafkaClient, readTopics } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { runProgram, startProgram } from '../../support/process/service-process.ts';
import { sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const WITHIN_MS = 60_000;
const ADD = 'deploy/setup/add-partitions.ts';
const CO_PARTITIONED = ['message-created', 'retry-due', 'slow-lane'];

let posthorn: Posthorn;
const receiver = useReceiver();
let kafka: Kafka;
let webhookIds: string[];

beforeAll(async () => {
  posthorn = await startPosthorn({ TOPIC_PARTITIONS: '2', RETRY_DELAYS: '1s,2s' });
  const { KAFKA_BROKERS } = posthorn.env;
  const logger = createLogger('test', 'silent');
  kafka = createKafkaClient('posthorn-test', { brokers: KAFKA_BROKERS.split(',') }, logger);
  const making = Array.from({ length: 12 }, () => posthorn.api.createTarget(receiver.url));
  webhookIds = (await Promise.all(making)).map(({ webhookId }) => webhookId);
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
});

interface Ran {
  code: number | null;
  text: string;
}

async function run(path: string, args: string[] = []): Promise<Ran> {
  const program = startProgram(path, args, { ...posthorn.env, OPS_PORT: '0', LOG_LEVEL: 'silent' });
  const { code } = await program.ended;
  return { code, text: program.output() };
}

const topics = (...args: string[]): Promise<Ran> => run(ADMIN, ['topics', ...args]);
const topic = (name: string): string => posthorn.env.TOPIC_PREFIX + name;

describe('admin doctor', () => {
  it('checks every part of an installation', async () => {
    const { code, text } = await run(ADMIN, ['doctor', '--json']);
    const { ok, checks } = JSON.parse(text) as {
      ok: boolean;
      checks: { name: string; status: string; message: string }[];
    };
    const names = ['topics', 'mongodb', 'indexes', 'clock', 'disk', 'redis', 'egress'];
    expect(checks.map(({ name }) => name)).toEqual(names);
    expect(checks.filter(({ status }) => status === 'fail')).toEqual([]);
    expect([code, ok]).toEqual([0, true]);
  });

  it('ends with 5 when a store does not answer, and checks the others', async () => {
    const env = { ...posthorn.env, REDIS_URL: 'redis://127.0.0.1:1', LOG_LEVEL: 'silent' };
    const program = startProgram(ADMIN, ['doctor'], env);
    expect((await program.ended).code).toBe(5);
    expect(program.output()).toMatch(/^ok {4}topics .*\n(.*\n)*fail {2}redis .*\n.* egress .*\n$/);
  });
});

describe('Settings of topics that somebody has changed', () => {
  /** As an operator changes a setting, or a tool that does not know what the topics are for. */
  async function change(name: string, settings: Record<string, string>): Promise<void> {
    const access = { brokers: [posthorn.env.KAFKA_BROKERS], tls: null, sasl: null };
    await applyTopicChanges(access, [{ topic: topic(name), settings }], { isDryRun: false });
  }

  it('are none after create-topics', async () => {
    expect(await topics('check')).toEqual({ code: 0, text: '14 topics, 0 differences\n' });
  });

  it('stop a service from starting where records could be lost, and are mended by a command', async () => {
    await change('retry.1s', { 'retention.ms': '4000', 'cleanup.policy': 'compact' });
    const { code, text } = await run('services/retry/src/main.ts');
    expect(code).toBe(1);
    expect(text).toBe(
      'Settings of topics could lose records or stop deliveries:\n' +
        `  ${topic('retry.1s')} has cleanup.policy=compact, wanted delete: only the newest record of each webhook is kept, the others are lost\n` +
        `  ${topic('retry.1s')} has retention.ms=4000, wanted 604801000: records are deleted before an outage of the promised length is over\n` +
        'Correct settings with `npm run admin -- topics apply` (docs/topics.md), then start again.\n',
    );
    const wouldBe = await topics('apply', '--dry-run');
    expect(wouldBe.text).toContain('2 settings of 1 topics would be written');
    expect((await topics('check')).code).toBe(1);
    expect(await topics('apply')).toEqual({
      code: 0,
      text:
        `${topic('retry.1s')}  cleanup.policy=delete\n` +
        `${topic('retry.1s')}  retention.ms=604801000\n` +
        '2 settings of 1 topics written\n',
    });
    expect((await topics('check')).code).toBe(0);
  });

  it('are warned of where they are harmless, and keep records unless it is forced', async () => {
    await change('message-created', { 'retention.ms': '-1' });
    const retry = await posthorn.start('retry', { LOG_LEVEL: 'info' });
    const warning = `${topic('message-created')} has retention.ms=-1`;
    await eventually('the warning', () => retry.output().includes(warning));
    const metrics = await (await fetch(`${retry.opsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^posthorn_kafka_topic_settings_differing\S* 1$/m);
    const held = await topics('apply', '--json');
    expect(held.code).toBe(1);
    expect(JSON.parse(held.text)).toMatchObject({
      changes: [],
      held: [{ setting: 'retention.ms', value: '-1', remedy: 'apply-force' }],
    });
    await retry.stop();
    expect((await topics('apply', '--force')).code).toBe(0);
    expect((await topics('check')).code).toBe(0);
  });
});

describe('Topics that get more partitions', () => {
  const countsOf = async (names: readonly string[]): Promise<Set<number | undefined>> => {
    const existing = await readTopics(kafka);
    return new Set(names.map((name) => existing.get(topic(name))));
  };
  const addPartitions = (count: number): Promise<string> =>
    runProgram(ADD, [], { ...posthorn.env, TOPIC_PARTITIONS: String(count) });

  it('keep what they have while they are read, or when the number does not fit', async () => {
    await expect(addPartitions(4)).rejects.toThrow('have members. Stop all dispatchers');
    await expect(addPartitions(3)).rejects.toThrow('3 is no multiple of that');
    expect(await countsOf(CO_PARTITIONED)).toEqual(new Set([2]));
  });

  it('deliver accepted, parked and deferred messages of before and new ones once', async () => {
    receiver.answerWith(failing(1));
    const before = await sendMany(posthorn.api, webhookIds, 3);
    await eventually('first attempts', () => receiver.received.length >= 36, WITHIN_MS);
    const second = await posthorn.start('dispatcher');
    await Promise.all([second.stop(), posthorn.dispatcher.stop(), posthorn.retry.stop()]);
    const meanwhile = await sendMany(posthorn.api, webhookIds, 1);

    const own = [...(await readTopics(kafka)).keys()].filter((name) =>
      name.startsWith(posthorn.env.TOPIC_PREFIX),
    );
    expect(await addPartitions(4)).toContain(
      `${own.length} topics with 4 partitions, ${own.length} of them raised`,
    );
    const settings = { ...posthorn.env, TOPIC_PARTITIONS: '4' };
    expect(await runProgram(ADMIN, ['topics', 'check'], settings)).toContain(', 0 differences');
    await Promise.all([
      posthorn.start('dispatcher'),
      posthorn.start('dispatcher'),
      posthorn.start('retry'),
      posthorn.start('gateway', { PORT: '0' }),
    ]);
    const after = await sendMany(posthorn.api, webhookIds, 3);
    const sent = [...before, ...meanwhile, ...after];
    await untilDelivered(posthorn.api, sent, WITHIN_MS);
    // Each had one failure.
    const times = sent.map(({ messageId }) => receiver.of(messageId).length);
    expect(new Set(times)).toEqual(new Set([2]));
  }, 180_000);

  it('stop a service from starting while their numbers differ', async () => {
    const admin = kafka.admin();
    await admin.connect();
    const more = { topic: topic('slow-lane'), count: 8 };
    await admin.createPartitions({ topicPartitions: [more] });
    await admin.disconnect();
    await eventually('the partitions', async () => (await countsOf(['slow-lane'])).has(8));
    const settings = { ...posthorn.env, OPS_PORT: '0', LOG_LEVEL: 'silent' };
    const service = startProgram('services/dispatcher/src/main.ts', [], settings);
    expect((await service.ended).code).toBe(1);
    const { TOPIC_PREFIX: prefix } = posthorn.env;
    expect(service.output().trim()).toBe(
      `These topics must have the same number of partitions: ${prefix}message-created has 4, ` +
        `${prefix}retry-due has 4, ${prefix}slow-lane has 8. ` +
        'Run deploy/setup/add-partitions.ts as docs/partitions.md says.',
    );
  });
});
