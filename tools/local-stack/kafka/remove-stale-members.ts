import { once } from 'node:events';
import { connect } from 'node:net';
import { settlesWithin, waitUntil } from '../waiting.ts';
import { createLocalAdmin } from './local-admin.ts';

const LEAVE_GROUP = 13;
const CORRELATION_ID = 1;

/**
 * Removes all members of all groups from a broker that was just started. If members were killed with it, the broker waits
 * a whole session timeout (20 s) for them. A member that is still alive joins again. kafkajs does not export the
 * LeaveGroup request, so it is encoded here. If it fails, consumers only wait those 20 s.
 */
export async function removeStaleMembers(port: number): Promise<void> {
  await waitUntil({ what: 'Kafka to load the consumer groups', timeoutMs: 10_000 }, () =>
    removeMembers(port).then(
      () => true,
      () => false,
    ),
  );
}

/** Rejects while the broker is loading its groups. */
async function removeMembers(port: number): Promise<void> {
  for (const { groupId, memberIds } of await groupsWithMembers(port)) {
    for (const memberId of memberIds) await send(port, leaveGroupRequest(groupId, memberId));
  }
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

/** Encodes LeaveGroup version 0: size, API key, version, correlation id, client id, group id, member id. */
export function leaveGroupRequest(groupId: string, memberId: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeInt16BE(LEAVE_GROUP, 0);
  header.writeInt16BE(0, 2);
  header.writeInt32BE(CORRELATION_ID, 4);
  const body = Buffer.concat([
    header,
    ...['posthorn-local-stack', groupId, memberId].map(withLengthPrefix),
  ]);
  const size = Buffer.alloc(4);
  size.writeInt32BE(body.length);
  return Buffer.concat([size, body]);
}

function withLengthPrefix(text: string): Buffer {
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
