import type { Commit } from '@posthorn/platform/kafka/positions/partition-window.ts';
import { goOn } from '@posthorn/platform/kafka/consumer/take-in.ts';
import type { Reader } from '../judge/reader-state.ts';
import { keyOf } from './simulated-kafka.ts';

/** As often as in commit-offsets.ts. */
const COMMIT_MS = 250;

export function commitSoon(reader: Reader): void {
  if (reader.isCommitting) return;
  reader.isCommitting = true;
  reader.world.time.after(COMMIT_MS, () => {
    reader.isCommitting = false;
    if (reader.process.isAlive()) void commit(reader);
  });
}

/** As `commit` of commit-offsets.ts; a commit of an earlier generation is refused. */
async function commit(reader: Reader): Promise<void> {
  const { offsets, process, generation, intake, topics } = reader;
  const commits = offsets.uncommitted();
  if (commits.length === 0) return;
  reader.isCommitting = true;
  let isRefused = false;
  const send = process.request({
    what: `commit ${commits.map((each) => `${keyOf(each)}:${each.offset}`).join(' ')}`,
    parts: [() => (isRefused = !store(reader, generation, commits))],
    answer: () => undefined,
    lost: () => new Error('the coordinator did not answer'),
  });
  const isStored = await send.then(
    () => !isRefused,
    () => false,
  );
  reader.isCommitting = false;
  if (!isStored) {
    commitSoon(reader);
    return;
  }
  offsets.markCommitted(commits);
  forget(reader, commits);
  for (const topic of topics) goOn(intake, topic);
  commitSoon(reader);
}

/** Answers whether the commit counts. */
function store({ group, watch }: Reader, generation: number, commits: readonly Commit[]): boolean {
  if (generation !== group.generation) return false;
  for (const each of commits) {
    watch.onCommit(group, each);
    group.committed.set(keyOf(each), each.offset);
  }
  return true;
}

function forget({ begun }: Reader, commits: readonly Commit[]): void {
  for (const { offset, ...place } of commits) {
    const rest = begun.get(keyOf(place))?.filter((record) => record.offset >= offset) ?? [];
    begun.set(keyOf(place), rest);
  }
}
