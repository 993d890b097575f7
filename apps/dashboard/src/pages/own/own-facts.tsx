import type { Fact } from '../../parts/figures.tsx';
import type { OwnFields } from '../../parts/form-fields.ts';
import { Copyable } from '../../parts/values.tsx';
import { useSession } from '../../session/session-context.ts';

/** The own fields among the facts of something. The portal does not show uids. */
export function useOwnFacts({ uid, metadata }: OwnFields): Fact[] {
  const { kind } = useSession();
  const entries = Object.entries(metadata);
  const shown = entries.map(([key, value]) => (
    <div key={key}>
      {key}: <Copyable text={value} name={`metadata ${key}`} />
    </div>
  ));
  return [
    ...(kind === 'portal'
      ? []
      : [['Uid', uid === null ? 'none' : <Copyable key="uid" text={uid} name="uid" />] as const]),
    ['Metadata', entries.length === 0 ? 'none' : shown],
  ];
}
