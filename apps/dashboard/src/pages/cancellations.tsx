import { useInfiniteQuery } from '@tanstack/react-query';
import type { Schemas } from '../api/client.ts';
import { cancellationsQuery } from '../api/matching.ts';
import { Section } from '../parts/page.tsx';
import { QueryView, ShowMore } from '../parts/states.tsx';
import { Status } from '../parts/status.tsx';
import { type Column, Rows, WIDTHS } from '../parts/table.tsx';
import { countText } from '../parts/time-words.ts';
import { Cut, When } from '../parts/values.tsx';
import { useOwners, WhoseDeliveries } from './resend-progress.tsx';

type Cancellation = Schemas['Cancellation'];

/** What was cancelled by a filter, newest first. */
export function Cancellations(filter: {
  appId: string | undefined;
  webhookId: string | undefined;
}) {
  const query = useInfiniteQuery(cancellationsQuery(filter));
  return (
    <QueryView query={query} what="the cancellations">
      {({ pages }) => {
        const all = pages.flatMap(({ data }) => data);
        if (all.length === 0) return null;
        return (
          <Section title="Cancellations">
            <List cancellations={all} />
            <ShowMore query={query}>Show older cancellations</ShowMore>
          </Section>
        );
      }}
    </QueryView>
  );
}

function List({ cancellations }: { cancellations: Cancellation[] }) {
  const owners = useOwners(cancellations.map(({ filter }) => filter));
  const columns: readonly Column<Cancellation>[] = [
    { name: 'Cancellation', width: WIDTHS.id, cell: ({ id }) => <Cut text={id} look="id" /> },
    { name: 'Started', width: WIDTHS.time, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      name: 'Status',
      width: WIDTHS.status,
      cell: ({ status }) => (
        <Status tone={status === 'done' ? 'good' : 'waiting'}>{status}</Status>
      ),
    },
    {
      name: 'Of',
      cell: ({ filter }) => <WhoseDeliveries owner={filter} only={onlyOf(filter)} {...owners} />,
    },
    {
      name: 'Cancelled',
      width: 7.5,
      isNumber: true,
      cell: ({ cancelled }) => countText(cancelled),
    },
  ];
  return <Rows caption="Cancellations" columns={columns} rows={cancellations} keyOf={keyOf} />;
}

const keyOf = ({ id }: Cancellation): string => id;

/** What the filter selects besides an app or a webhook. */
function onlyOf({ eventType, waiting, reason }: Cancellation['filter']): string | null {
  return eventType ?? waiting ?? reason?.replaceAll('_', ' ') ?? null;
}
