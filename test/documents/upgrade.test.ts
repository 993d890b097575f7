import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import {
  decodeEndedAttempt,
  encodeDeliveryFailed,
  encodeMessageCreated,
} from '@posthorn/domain/records/records.ts';
import { decodeRetryDue, encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { ASSIGNER_VERSION } from '@posthorn/platform/kafka/consumer/partition-assignment.ts';
import { DATABASE_USERS, databaseRoleOf } from '../../deploy/setup/mongodb-rights.ts';
import { SEALED_FORMAT } from '@posthorn/platform/security/vault.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/upgrade.md'), 'utf8');

/** What the page says that is read and written of what begins with these words. */
function rowOf(beginning: string): { reads: number[]; writes: number[] } {
  const line = page.split('\n').find((each) => each.startsWith(`| ${beginning}`));
  const [, , reads = '', writes = ''] = line?.split('|') ?? [];
  const numbers = (text: string): number[] => text.split(',').map(Number);
  return { reads: numbers(reads), writes: numbers(writes) };
}

const ref = {
  messageId: 'msg_1',
  webhookId: 'wh_1',
  companyId: 'comp_1',
  appId: null,
  createdAtMs: 1,
};
const retry = encodeRetryDue({ ...ref, attemptNumber: 2, dueAtMs: 1 });
const failed = encodeDeliveryFailed({
  ...ref,
  attemptNumber: 1,
  endedAtMs: 1,
  outcome: 'timeout',
  statusCode: null,
});

const versionOf = (value: Buffer): unknown =>
  (JSON.parse(value.toString()) as { version: unknown }).version;
const withVersion = (value: Buffer, version: number): Buffer =>
  Buffer.from(JSON.stringify({ ...(JSON.parse(value.toString()) as object), version }));

/** The text between two headings. */
function sectionOf(heading: string): string {
  const [, after = ''] = page.split(`\n${heading}\n`);
  return after.split(/\n##+ /)[0] ?? '';
}

describe('docs/upgrade.md', () => {
  it('begins with the rights, and names every role of MongoDB, before topics and indexes', () => {
    const order = sectionOf('## The order');
    const beforeTopics = order.slice(0, order.indexOf('**Topics and indexes**'));
    for (const user of DATABASE_USERS) expect(beforeTopics).toContain(databaseRoleOf(user));
  });

  it('has the version of the records that are written', () => {
    const { writes } = rowOf('records in Kafka');
    for (const value of [encodeMessageCreated(ref, null), retry, failed]) {
      expect([versionOf(value)]).toEqual(writes);
    }
  });

  it('has the versions of the records that are read, and of no other', () => {
    const { reads } = rowOf('records in Kafka');
    for (const version of [0, 1, 2, 3]) {
      for (const read of [
        () => decodeRetryDue(withVersion(retry, version)),
        () => decodeEndedAttempt(withVersion(failed, version)),
      ]) {
        if (reads.includes(version)) expect(read).not.toThrow();
        else expect(read).toThrow(UnreadableRecordError);
      }
    }
  });

  it('has the format of sealed values', () => {
    expect(rowOf('sealed values')).toEqual({ reads: [SEALED_FORMAT], writes: [SEALED_FORMAT] });
  });

  it('has the version of the group protocol', () => {
    expect(rowOf('assignment of partitions')).toEqual({
      reads: [ASSIGNER_VERSION],
      writes: [ASSIGNER_VERSION],
    });
  });
});
