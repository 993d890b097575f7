import { once } from 'node:events';
import { connect } from 'node:net';
import { settlesWithin, until } from '../waiting.ts';
import { createLocalAdmin } from './local-admin.ts';

const LEAVE_GROUP = 13;
const CORRELATION_ID = 1;

/**
 * A broker that was just started waits a whole session timeout (20 s) for the members its groups had before, if these
 * were killed. All of them are from an earlier time, so each is reported as gone; one that lives simply joins again.
 * kafkajs keeps this request to itself, hence the bytes; when it fails, the only loss is those seconds.
 */
export async function forgetMembers(port: number): Promise<void> {
  await until({ what: 'The loading of the consumer groups', timeoutMs: 10_000 }, () =>
    triedToForget(port).catch(() => false),
  );
}

/** Fails while the broker still loads its groups. */
async function triedToForget(port: number): Promise<boolean> {
  for (const { groupId, memberIds } of await groupsWithMembers(port)) {
    for (const memberId of memberIds) await send(port, leaveGroupRequest(groupId, memberId));
  }
  return true;
}

async function groupsWithMembers(
  port: number,
): Promise<{ groupId: string; memberIds: string[] }[]> {
  const admin = createLocalAdmin(`127.0.0.1:${port}`);
  try {
    await admin.connect();
    const { groups } = await admin.listGroups();
    if (groups.length === 0) return [];
    const described = await admin.describeGroups(groups.map(({ groupId }) => groupId));
    return described.groups.map(({ groupId, members }) => ({
      groupId,
      memberIds: members.map(({ memberId }) => memberId),
    }));
  } finally {
    await admin.disconnect();
  }
}

/** LeaveGroup version 0: size, key, version, correlation, client, then group and member. */
export function leaveGroupRequest(groupId: string, memberId: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeInt16BE(LEAVE_GROUP, 0);
  head.writeInt16BE(0, 2);
  head.writeInt32BE(CORRELATION_ID, 4);
  const body = Buffer.concat([
    head,
    ...['posthorn-local-stack', groupId, memberId].map(lengthFirst),
  ]);
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length);
  return Buffer.concat([size, body]);
}

function lengthFirst(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

async function send(port: number, request: Buffer): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.write(request);
  await settlesWithin(once(socket, 'data'), 2_000);
  socket.destroy();
}
